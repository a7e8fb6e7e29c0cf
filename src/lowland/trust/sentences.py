"""One sentence for each question about a map: the summary for people in a hurry.

An island is a cluster of the map as the eye sees it: a hill of the density of its points.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lowland._base.errors import count
from lowland.metrics import Gap
from lowland.metrics.home import PointHome
from lowland.trust.result import Chance, Contrast, Island, Sentence, Stability, Trust

FEW, MANY = 0.05, 0.5  # shares of points that are not fine: below, nothing to fear; above, serious
FEW_MISPLACED = 0.005
STABLE_POINTS, UNSTABLE_POINTS = 0.4, 0.2  # agreement of refits
NO_EXCESS = 0.05  # recall beyond chance that does not count
LOW_SILHOUETTE, CLEAR_SILHOUETTE = 0.05, 0.25
LOW_CORRELATION = 0.5
NAMED = 4  # gaps and islands that a sentence names


def sentences_about(found: Trust) -> list[Sentence]:
    """The answers that are known, in the order of the questions."""
    gaps, islands = found.gaps, found.islands
    sentences = [_about_points(found.points), _about_gaps(gaps, islands), *_about_merged(islands)]
    if found.stability is not None:
        sentences.append(_about_stability(found.stability))
    if found.chance is not None:
        sentences.append(_about_chance(found.chance, gaps))
    return [*sentences, *_about_contrast(found.contrast, gaps)]


POINT_WORDS = {
    "misplaced": "misplaced",
    "torn": "torn from most of their neighbors",
    "pressed": "placed among dissimilar points",
}


def _about_points(points: PointHome) -> Sentence:
    counts = points.counts()
    n = sum(counts.values())
    bad = n - counts["fine"]
    level = "fine"
    if bad > FEW * n or counts["misplaced"] > FEW_MISPLACED * n:
        level = "serious" if bad > MANY * n else "caution"
    sampled = n < len(points.kind)
    named = "points of a sample" if sampled else "points"
    kinds = [kind for kind in POINT_WORDS if counts[kind]]
    share = f"{bad / n:.0%}" if bad >= n / 10 else f"{bad / n:.1%}"
    if not kinds:
        text = f"All {n:,} {named} lie among their neighbors."
    elif len(kinds) == 1:
        verb = "is" if bad == 1 else "are"
        text = f"{bad:,} of {n:,} {named} ({share}) {verb} {POINT_WORDS[kinds[0]]}."
    else:
        parts = _joined([f"{counts[kind]:,} {POINT_WORDS[kind]}" for kind in kinds])
        text = f"Of {n:,} {named}, {bad:,} ({share}) are not where they belong: {parts}."
    return Sentence("points", level, text)


GAP_WORDS = {
    "real": "in the data",
    "not in the data": "not in the data",
    "unclear": "unclear",
    "bridged": "bridged by other islands",
}


def _about_gaps(gaps: list[Gap], islands: list[Island]) -> Sentence:
    if len(islands) < 2:
        what = "one island" if islands else "no island"
        return Sentence("gaps", "fine", f"The map shows {what}, and no gaps.")
    kinds = {kind: [gap for gap in gaps if gap.verdict == kind] for kind in GAP_WORDS}
    level = "serious" if kinds["not in the data"] else "caution" if kinds["unclear"] else "fine"
    n, word = len(gaps), GAP_WORDS[gaps[0].verdict]
    between = f"gaps between {len(islands)} islands"
    if n == 1:
        where = "the two islands" if len(islands) == 2 else "neighboring islands"
        text = f"The gap between {where} is {word}"
    elif len(kinds["not in the data"]) == n:
        text = f"{'Neither of the' if n == 2 else f'None of the {n}'} {between} is in the data"
    elif len(kinds[gaps[0].verdict]) == n:
        text = f"{'Both' if n == 2 else f'All {n}'} {between} are {word}"
    else:
        parts = []
        for kind, found in kinds.items():
            which = "" if kind == "real" else _named(found)
            verb = "is" if len(found) == 1 else "are"
            parts += [f"{len(found)} {verb} {GAP_WORDS[kind]}{which}"] if found else []
        text = f"Of {n} {between}, {_joined(parts)}"
    return Sentence("gaps", level, f"{text}.")


def _about_merged(islands: list[Island]) -> Iterator[Sentence]:
    tested = [island for island in islands if island.inner is not None]
    merged = [island.number for island in tested if island.inner.verdict == "real"]  # type: ignore[union-attr]
    if merged:
        hold = "holds two groups" if len(merged) == 1 else "hold two groups each"
        text = f"{_numbers(merged)} {hold} that the data separate and the map does not."
        yield Sentence("merged", "caution", text)
    elif tested:
        yield Sentence("merged", "fine", "No island holds two groups that the data separate.")


def _about_stability(stability: Stability) -> Sentence:
    share = stability.agreement
    level = "fine" if share >= STABLE_POINTS else "caution"
    if share < max(UNSTABLE_POINTS, 2 * stability.chance):
        level = "serious"
    others = count(len(stability.refits), "other map")
    rows = min(len(other.rows) for other in stability.refits)
    maps = "Maps made again" if stability.refits[0].title.startswith("refit") else "Other maps"
    text = (
        f"{maps} agree on {share:.0%} of a point's neighbors "
        f"(unrelated maps: {stability.chance:.1%}; {others} of {rows:,} rows)"
    )
    if stability.islands:
        gone = [each.island for each in stability.islands if each.verdict == "unstable"]
        stable = sum(each.verdict == "stable" for each in stability.islands)
        total = len(stability.islands)
        if total == 1:
            text += f"; its island {'comes' if stable else 'does not always come'} again"
        else:
            text += f"; {stable} of {total} islands {'comes' if stable == 1 else 'come'} again"
        if gone and total > 1:
            text += f", {_numbers(gone).lower()} {'does' if len(gone) == 1 else 'do'} not"
        if gone and level == "fine":
            level = "caution"
    return Sentence("stability", level, f"{text}.")


def _about_chance(chance: Chance, gaps: list[Gap]) -> Sentence:
    """Neighbors kept beyond chance, or islands that chance does not make: one of them suffices.

    Islands count only if a gap between them is in the data: at a low perplexity noise has many.
    """
    excess = chance.recall - chance.null_recall
    is_real = any(gap.verdict == "real" for gap in gaps)
    shows_islands = is_real and chance.n_islands > chance.null_islands
    level = "fine" if excess > NO_EXCESS or shows_islands else "serious"
    text = (
        f"The map keeps {chance.recall:.0%} of the neighbors, a map of data without structure "
        f"{chance.null_recall:.0%} (islands: {chance.n_islands} and {chance.null_islands})"
    )
    if excess > NO_EXCESS:
        text += f"; {chance.share_above:.0%} of the points keep more than chance"
    elif shows_islands:
        text += "; within an island, the order of the points is chance"
    else:
        text += ": what it shows may be chance"
    return Sentence("chance", level, f"{text}.")


def _about_contrast(contrast: Contrast, gaps: list[Gap]) -> Iterator[Sentence]:
    if not np.isfinite(contrast.silhouette):
        return
    low = contrast.silhouette < LOW_SILHOUETTE
    clear = contrast.silhouette >= CLEAR_SILHOUETTE
    kind = "hardly" if low else "well" if clear else "moderately"
    text = f"In the data, the islands are {kind} separated (silhouette {contrast.silhouette:.2f})"
    doubtful = low and any(gap.verdict == "real" for gap in gaps)
    if np.isfinite(contrast.centers):
        follow = "follow" if contrast.centers >= LOW_CORRELATION else "do not follow"
        doubtful = doubtful or contrast.centers < LOW_CORRELATION
        text += f"; distances between islands {follow} those in the data (Spearman "
        text += f"{contrast.centers:.2f})"
    yield Sentence("contrast", "caution" if doubtful else "fine", f"{text}.")


def _named(gaps: list[Gap]) -> str:
    """The islands of the first gaps: `` (1 and 11, 2 and 4, ...)``."""
    shown = [f"{gap.one} and {gap.other}" for gap in gaps[:NAMED]]
    return f" ({', '.join(shown)}{', ...' if len(gaps) > NAMED else ''})"


def _numbers(islands: list[int]) -> str:
    """``Island 3``, ``Islands 3 and 5``, ``Islands 1, 2, 4, 5 and 3 more``."""
    if len(islands) == 1:
        return f"Island {islands[0]}"
    names = [str(number) for number in islands]
    if len(names) > NAMED + 1:
        names = [*names[:NAMED], f"{len(names) - NAMED} more"]
    return f"Islands {_joined(names)}"


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
