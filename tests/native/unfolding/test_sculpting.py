"""The kernels of manifold sculpting against loops over their definitions."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa
from support.oracles.unfolding_sculpting import angle, neighbors_of


def rows_of(irregular, n, d, seed=0):
    """Irregular rows, two of them in one place."""
    X = np.ascontiguousarray(irregular(n, d, seed=seed), np.float64)
    if n > 8:
        X[7] = X[3]
    return X


def lists_of(X, k):
    lists = neighbors_of(X, k)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in lists])]).astype(np.int64)
    return lists, starts, np.concatenate([np.array(row, np.int32) for row in lists])


def relations(X, k, q, isa="auto", threads=1):
    """Lists, partners, sums over the axes from q on, and what is kept."""
    lists, starts, ends = lists_of(X, k)
    partner, sums = np.full(len(ends), -5, np.int32), np.full((3, len(ends)), np.nan)
    _native.angle_partners(X, starts, ends, X, starts, ends, True, q, partner, sums, threads, isa)
    kept, errors = np.empty((2, len(ends))), np.empty(len(X))
    Y = np.ascontiguousarray(X[:, :q])
    nothing = (starts, ends, partner, sums, np.zeros((2, len(ends))), 1.0)
    _native.sculpt_terms(*nothing, 1.0, Y, Y, kept, errors, threads, isa)
    return lists, (starts, ends, partner, sums, kept, 2 * float(kept[0].mean()))


def roles_of(keep):
    starts, ends, partner = keep[:3]
    n, rows = len(starts) - 1, np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    found = []
    for key in (partner, ends):
        edges = [[e for e in range(len(ends)) if partner[e] >= 0 and key[e] == i] for i in range(n)]
        found.append(np.concatenate([[0], np.cumsum([len(e) for e in edges])]).astype(np.int64))
        found.append(np.concatenate([np.array(row, np.int64) for row in edges]))
    return (*found, rows.astype(np.int32))


def spread(Y, rest, scale):
    """Places in all axes, those that are scaled away times the scale."""
    return np.hstack([Y, scale * rest])


def term_errors(P, keep, i, weights, move_only_own=False):
    """The error of all terms that point i has a part in, at the places P; eq. of the docstring."""
    starts, ends, partner, _, kept, width = keep
    rows, total = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), 0.0
    for e in range(len(ends)):
        a, j, m = rows[e], ends[e], partner[e]
        if a == i:
            double = 1 if move_only_own else 2  # j counts the same distance
            off = (np.linalg.norm(P[a] - P[j]) - kept[0, e]) / width
            total += double * weights[j] * off**2
        if m >= 0 and (a == i or (not move_only_own and i in (j, m))):
            turned = min(angle(P[a], P[j], P[m]) - kept[1, e], 0) / np.pi
            total += weights[a if i == j else j] * turned**2
    return total


@each("d", [2, 3, 5])
@each_isa
def test_partners_are_at_the_widest_angle(d, isa, irregular):
    for n, k in [(2, 1), (3, 2), (5, 3), (40, 6)]:
        X = rows_of(irregular, n, d)
        lists, (starts, ends, partner, sums, kept, _) = relations(X, k, 1, isa)
        rows = np.repeat(np.arange(n), np.diff(starts))
        for e, (i, j) in enumerate(zip(rows, ends, strict=True)):
            np.testing.assert_allclose(kept[0, e], np.linalg.norm(X[i] - X[j]), atol=1e-12)
            np.testing.assert_allclose(sums[0, e], ((X[i] - X[j])[1:] ** 2).sum(), atol=1e-12)
            others = [m for m in lists[j] if m != i and np.any(X[m] != X[j])]
            if not others or not np.any(X[i] != X[j]):
                assert partner[e] == -1
                continue
            best = max(angle(X[i], X[j], X[m]) for m in others)
            # the rounding of an arc cosine is that of a root near a straight angle
            np.testing.assert_allclose(angle(X[i], X[j], X[partner[e]]), best, atol=1e-7)
            np.testing.assert_allclose(kept[1, e], best, atol=1e-7)


@each("q", [1, 2, 3, 4])
@each_isa
def test_local_errors_equal_their_definition(q, isa, irregular):
    X = rows_of(irregular, 33, q + 2)
    _, keep = relations(X, 5, q, isa)
    Y = np.ascontiguousarray(X[:, :q] + 0.1 * irregular(33, q, seed=3))
    terms, errors = np.empty(keep[4].shape), np.empty(33)
    for scale in (1.0, 0.3, 0.0):
        _native.sculpt_terms(*keep, scale, Y, Y, terms, errors, 1, isa)
        P = spread(Y, X[:, q:], scale)
        true = [term_errors(P, keep, i, np.ones(33), move_only_own=True) for i in range(33)]
        np.testing.assert_allclose(errors, true, rtol=1e-6, atol=1e-9)


def naive_pass(P, q, keep, seeds, fixed, steps, adjusted, sweeps, lists):  # noqa: C901
    """One pass, as the docstring of the method tells it; P is changed."""
    done, moves = np.zeros(len(P), bool), 0
    starts, ends, partner, _, kept, _ = keep
    for seed in seeds:
        if done[seed]:
            continue
        order, seen = [seed], {seed}
        for i in order:
            fresh = [j for j in lists[i] if j not in seen and not done[j]]
            order += fresh
            seen |= set(fresh)
        for i in order:
            weights = np.where(done, adjusted, 1.0)
            if i != seed and not fixed[i]:
                best = term_errors(P, keep, i, weights)
                edges = [
                    e
                    for e in range(starts[i], starts[i + 1])
                    if partner[e] >= 0 and done[ends[e]] and done[partner[e]]
                ]
                guesses = []
                for e in edges:
                    arm = P[ends[e]] - P[partner[e]]
                    if arm @ arm > 0:
                        guesses.append((P[ends[e]] + kept[0, e] / np.sqrt(arm @ arm) * arm)[:q])
                if guesses:
                    trial = P.copy()
                    trial[i, :q] = np.mean(guesses, axis=0)
                    found = term_errors(trial, keep, i, weights)
                    if found < best:
                        best, P[i] = found, trial[i]
                for _ in range(sweeps):
                    moved = False
                    for a in range(q):
                        for step in (steps[i], -steps[i]):
                            trial = P.copy()
                            trial[i, a] += step
                            found = term_errors(trial, keep, i, weights)
                            if found < best:
                                best, P[i], moved = found, trial[i], True
                                break
                    if not moved:
                        break
                    moves += 1
            done[i] = True
    return moves


@each("q", [1, 2, 3])
@each_isa
def test_a_pass_is_that_of_the_definition(q, isa, irregular):
    n = 22
    X = rows_of(irregular, n, q + 1, seed=q)
    lists, keep = relations(X, 4, q, isa)
    start = X[:, :q] + 0.3 * irregular(n, q, seed=7)
    Y = np.ascontiguousarray(start)
    fixed = np.zeros(n, np.uint8)
    fixed[5] = 1
    steps = 0.05 * keep[5] * np.random.default_rng(2).uniform(0.6, 1, n)
    seeds, local = np.arange(3, n, dtype=np.int32), np.empty((2, n))
    P = spread(Y, X[:, q:], 0.7)
    expected = naive_pass(P, q, keep, seeds, fixed, steps, 10.0, 3, lists)
    roles = roles_of(keep)
    moves = _native.sculpt_pass(*keep, 0.7, *roles, seeds, fixed, steps, 10.0, 3, Y, local, isa)
    assert moves == expected > n // 2
    np.testing.assert_allclose(Y, P[:, :q], atol=1e-9)
    np.testing.assert_array_equal(Y[5], start[5])
    assert (local[1] <= local[0]).all()
    assert (local[1] < local[0]).sum() > n // 2


def test_the_number_of_threads_does_not_change_a_byte(irregular, same_for_threads):
    X = rows_of(irregular, 300, 4)
    same_for_threads(lambda threads: relations(X, 6, 2, threads=threads)[1])


def test_descents_of_new_points_end_where_no_step_is_lower(irregular):
    X = rows_of(irregular, 40, 2)
    _, keep = relations(X, 5, 2)
    new = X[:6] + 0.05
    starts, ends = np.arange(0, 31, 5, dtype=np.int64), np.arange(30, dtype=np.int32)
    kept = np.vstack([np.linalg.norm(np.repeat(new, 5, axis=0) - X[ends], axis=1), np.zeros(30)])
    nobody = np.full(30, -1, np.int32)
    found, errors = new + 0.3, np.empty((6, 1))
    wanted = (starts, ends, nobody, np.zeros((3, 30)), kept, keep[5])
    _native.sculpt_places(*wanted, X, np.ones(6), 1e-9, found, errors, 1)
    np.testing.assert_allclose(errors, 0, atol=1e-12)  # distances to points of a plane
    np.testing.assert_allclose(found, new, atol=1e-5)


def test_what_does_not_fit_is_refused(irregular):
    X = rows_of(irregular, 12, 3)
    _, keep = relations(X, 3, 2)
    starts, ends, partner, sums, kept, width = keep
    Y, terms, errors = np.ascontiguousarray(X[:, :2]), np.empty(kept.shape), np.empty(12)
    far = ends.copy()
    far[0] = 12
    for wrong in [
        (starts + 1, ends, partner, sums, kept, width),
        (starts, far, partner, sums, kept, width),
        (starts, ends, np.full_like(partner, 12), sums, kept, width),
        (starts, ends, partner, sums[:2].copy(), kept, width),
        (starts, ends, partner, sums, kept, 0.0),
        (starts, ends, partner, sums, kept, np.nan),
    ]:
        with pytest.raises(ValueError, match="sculpting"):
            _native.sculpt_terms(*wrong, 1.0, Y, Y, terms, errors, 1)
    roles, seeds = list(roles_of(keep)), np.zeros(1, np.int32)
    rest = (np.zeros(12, np.uint8), np.ones(12), 1.0, 3, Y.copy(), np.empty((2, 12)))
    for number, wrong in [(1, roles[1] + len(ends)), (0, roles[0] + 1), (4, roles[4] + 12)]:
        given = [*roles[:number], wrong, *roles[number + 1 :]]
        with pytest.raises(ValueError, match="sculpt_pass"):
            _native.sculpt_pass(*keep, 1.0, *given, seeds, *rest)
    with pytest.raises(ValueError, match="seed"):
        _native.sculpt_pass(*keep, 1.0, *roles, seeds + 12, *rest)
