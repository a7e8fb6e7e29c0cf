"""Out-of-sample formulas of linear and kernel methods, from the training rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from support.oracles.basics import HeldOut, like_the_map

# --- PCA --------------------------------------------------------------------------------------


def _principal(task: HeldOut) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, unit of each column, axes in columns and variances along them."""
    X = np.asarray(task.X, float)
    n, p = X.shape
    mean = np.array([sum(X[:, j]) / n for j in range(p)])
    unit = np.ones(p)
    if task.params["scale"]:
        unit = np.array([np.sqrt(sum((X[:, j] - mean[j]) ** 2) / (n - 1)) for j in range(p)])
    Z = (X - mean) / unit
    S = sum(np.outer(z, z) for z in Z) / (n - 1)
    values, axes = np.linalg.eigh(S)
    q = task.Y.shape[1]
    values, axes = values[::-1][:q], axes[:, ::-1][:, :q]
    for axis in axes.T:  # the largest entry of each axis is positive
        axis *= np.sign(axis[np.abs(axis).argmax()])
    return mean, unit, axes, np.maximum(values, 0.0)


def pca(task: HeldOut) -> np.ndarray:
    """z_k = w_k . (x - m) / s, divided by the deviation along the axis if whitened."""
    mean, unit, axes, variances = _principal(task)
    deviation = np.sqrt(variances) if task.params["whiten"] else np.ones(len(variances))
    return np.array([((x - mean) / unit) @ axes / deviation for x in task.new])


def pca_back(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    mean, unit, axes, variances = _principal(task)
    deviation = np.sqrt(variances) if task.params["whiten"] else np.ones(len(variances))
    return np.array([mean + unit * (axes @ (deviation * z)) for z in Z])


def pca_outlier_scores(task: HeldOut) -> tuple[np.ndarray, np.ndarray]:
    """sum_k z_k^2 / variance_k, and the squared distance from the plane of the map."""
    mean, unit, axes, variances = _principal(task)
    t2, residual = [], []
    for x in task.new:
        off = (x - mean) / unit
        z = off @ axes
        t2.append(sum(z**2 / variances))
        residual.append(sum((off - axes @ z) ** 2))
    return np.array(t2), np.array(residual)


# --- LDA --------------------------------------------------------------------------------------


def _classes(task: HeldOut) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means and priors of the classes, and the (shrunk) covariance within, with divisor n - C."""
    X, y, params = np.asarray(task.X, float), task.y, task.params
    names = sorted(set(y))
    n, C, p = len(X), len(names), X.shape[1]
    means = np.array([X[y == name].mean(axis=0) for name in names])
    shares = np.array([(y == name).sum() / n for name in names])
    priors = shares if params["priors"] is None else np.array(params["priors"])
    S = np.zeros((p, p))
    for name, mean in zip(names, means, strict=True):
        part = np.zeros((p, p))
        for x in X[y == name]:
            part += np.outer(x - mean, x - mean)
        if params["shrinkage"] == "auto":
            part = _shrunk_by_ledoit_wolf(X[y == name] - mean, part)
        S += part / (n - C)
    share = params["shrinkage"]
    if share not in (None, "auto"):
        S = (1 - share) * S + share * np.trace(S) / p * np.eye(p)
    return means, priors, S


def _shrunk_by_ledoit_wolf(Z: np.ndarray, scatter: np.ndarray) -> np.ndarray:
    """In units of the deviations of the class: b = mean |z z^T - S|^2 / n, a = |S - t I|^2."""
    n, p = Z.shape
    unit = np.sqrt(np.diag(scatter) / n)
    Z = Z / unit
    S = sum(np.outer(z, z) for z in Z) / n
    t = np.trace(S) / p
    a = ((S - t * np.eye(p)) ** 2).sum()
    b = min(a, sum(((np.outer(z, z) - S) ** 2).sum() for z in Z) / n**2)
    share = b / a
    return n * np.outer(unit, unit) * ((1 - share) * S + share * t * np.eye(p))


def _discriminants(task: HeldOut) -> tuple[np.ndarray, np.ndarray]:
    """The mean, and axes in columns with unit variance within classes."""
    means, priors, S = _classes(task)
    mean = priors @ means
    between = sum(w * np.outer(m - mean, m - mean) for w, m in zip(priors, means, strict=True))
    _, axes = scipy.linalg.eigh(between, S)
    axes = axes[:, ::-1][:, : task.Y.shape[1]]
    for axis in axes.T:
        axis *= np.sign(axis[np.abs(axis).argmax()])
        if len(means) == 2:  # the axis points to the second class
            axis *= np.sign((means[1] - means[0]) @ axis)
    return mean, axes


def lda(task: HeldOut) -> np.ndarray:
    mean, axes = _discriminants(task)
    return np.array([(x - mean) @ axes for x in task.new])


def lda_back(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    """The nearest row to the mean with that place."""
    mean, axes = _discriminants(task)
    return np.array([mean + np.linalg.lstsq(axes.T, z, rcond=None)[0] for z in Z])


def lda_probabilities(task: HeldOut) -> np.ndarray:
    """Bayes' rule for normal classes with the covariance S_W / n; one prior for "mahalanobis"."""
    means, priors, S = _classes(task)
    n, C = len(task.X), len(means)
    precision = np.linalg.inv(S * (n - C) / n)
    if task.params["rule"] == "mahalanobis":
        priors = np.ones(C) / C
    rows = []
    for x in task.new:
        squares = np.array([(x - m) @ precision @ (x - m) for m in means])
        weights = priors * np.exp(-(squares - squares.min()) / 2)
        rows.append(weights / weights.sum())
    return np.array(rows)


# --- LinearMDS --------------------------------------------------------------------------------


def _projection(task: HeldOut) -> tuple[np.ndarray, np.ndarray]:
    """m and W of the map z = W^T (x - m), solved from the fitted map itself."""
    X = np.asarray(task.X, float)
    mean = X.mean(axis=0)
    return mean, np.linalg.lstsq(X - mean, task.Y, rcond=None)[0]


def linear_mds(task: HeldOut) -> np.ndarray:
    mean, W = _projection(task)
    return np.array([(x - mean) @ W for x in task.new])


def linear_mds_back(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    mean, W = _projection(task)
    return np.array([mean + np.linalg.lstsq(W.T, z, rcond=None)[0] for z in Z])


# --- KernelPCA --------------------------------------------------------------------------------


def kernel_value(a: np.ndarray, b: np.ndarray, params: dict[str, Any], gamma: float) -> float:
    kernel, product = params["kernel"], float(sum(a * b))
    if callable(kernel):
        return kernel(a, b)
    if kernel == "rbf":
        return np.exp(-gamma * sum((a - b) ** 2))
    if kernel == "laplacian":
        return np.exp(-gamma * sum(abs(a - b)))
    if kernel == "poly":
        return (gamma * product + params["coef0"]) ** params["degree"]
    if kernel == "sigmoid":
        return np.tanh(gamma * product + params["coef0"])
    if kernel == "cosine":
        return product / np.sqrt(sum(a * a) * sum(b * b))
    assert kernel == "linear", f"no naive kernel {kernel}: write it here"
    return product


def _gamma(task: HeldOut) -> float:
    gamma, X = task.params["gamma"], np.asarray(task.X, float)
    if gamma == "1/p":
        return 1 / X.shape[1]
    if gamma not in (None, "median"):
        return gamma
    kernel, part = task.params["kernel"], 1.0 if gamma == "median" else 0.5
    pairs = [(X[i], X[j]) for i in range(len(X)) for j in range(i)]
    if kernel == "rbf":
        width = part * np.median([np.sqrt(sum((a - b) ** 2)) for a, b in pairs])
        return 1 / (2 * width**2)
    if kernel == "laplacian":
        return 1 / (part * np.median([sum(abs(a - b)) for a, b in pairs]))
    return {"sigmoid": 0.25}.get(str(kernel), 1.0) / np.mean([sum(a * a) for a in X])


def _values(A: Any, B: Any, task: HeldOut) -> np.ndarray:
    gamma = _gamma(task)
    return np.array([[kernel_value(a, b, task.params, gamma) for b in B] for a in A])


def _kernels(task: HeldOut) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(task.params["kernel"], str) and task.params["kernel"] == "precomputed":
        return np.asarray(task.X, float), np.asarray(task.new, float)
    X, new = np.asarray(task.X, float), np.asarray(task.new, float)
    return _values(X, X, task), _values(new, X, task)


def _landmarks(task: HeldOut) -> tuple[list[int], np.ndarray]:
    """The landmarks, and G^(-1/2) of their kernel matrix.

    The features G^(-1/2) k(landmarks, x) have Nystroem's approximation of K as inner products.
    """
    K, _ = _kernels(task)
    if task.params["kernel"] == "precomputed":
        marks = [int(j) for j in np.flatnonzero(task.model.dual_vectors_.any(axis=1))]
    else:
        kept = task.model.fitted_rows_
        marks = [int(np.abs(np.asarray(task.X) - row).sum(axis=1).argmin()) for row in kept]
    values, U = np.linalg.eigh(K[np.ix_(marks, marks)])
    return marks, U / np.sqrt(values)


def _axes_of(F: np.ndarray, q: int) -> np.ndarray:
    centered = F - F.mean(axis=0)
    return np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, :q]


def kernel_pca(task: HeldOut) -> np.ndarray:
    """sum_j A_jk (k(x, x_j) - mean_j k(x, x_j) - mean_i K_ij + mean K), A = V lambda^(-1/2)."""
    K, T = _kernels(task)
    q, column = task.Y.shape[1], K.mean(axis=0)
    if task.params["solver"] == "nystroem":
        marks, root = _landmarks(task)
        F, new = K[:, marks] @ root, T[:, marks] @ root
        axes, mean = _axes_of(F, q), F.mean(axis=0)
        return like_the_map(task, (F - mean) @ axes, (new - mean) @ axes)
    centered = K - column - column[:, None] + K.mean()
    values, V = np.linalg.eigh(centered)
    values, V = values[::-1][:q], V[:, ::-1][:, :q]
    assert (values > 1e-9 * values[0]).all(), "choose data with q positive eigenvalues"
    A = V / np.sqrt(values)
    placed = np.array([(t - t.mean() - column + K.mean()) @ A for t in T])
    return like_the_map(task, V * np.sqrt(values), placed)


def _expansion(task: HeldOut) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows x_j, their places, and A and b: the point z of the map is sum_j (b + A z)_j phi(x_j)."""
    X, Y = np.asarray(task.X, float), task.Y.astype(float)
    if task.params["solver"] != "nystroem":
        return X, Y, Y / (Y**2).sum(axis=0), np.full(len(X), 1 / len(X))
    marks, root = _landmarks(task)
    F = _kernels(task)[0][:, marks] @ root
    axes = _axes_of(F, Y.shape[1])
    axes = axes * np.sign((((F - F.mean(axis=0)) @ axes) * Y).sum(axis=0))
    return X[marks], Y[marks], root @ axes, root @ F.mean(axis=0)


def kernel_pca_back(task: HeldOut, Z: np.ndarray) -> np.ndarray:
    (X, Y, A, b), kernel = _expansion(task), task.params["kernel"]
    if kernel == "linear":  # linear regression of the rows on their places
        design = np.column_stack([np.ones(len(Y)), Y])
        coefficients = np.linalg.lstsq(design, X, rcond=None)[0]
        return np.column_stack([np.ones(len(Z)), Z]) @ coefficients
    if kernel != "rbf":  # kernel ridge regression, with an rbf kernel of median width
        pairs = [np.linalg.norm(Y[i] - Y[j]) for i in range(len(Y)) for j in range(i)]
        gamma = 1 / (2 * np.median(pairs) ** 2)

        def similar(a: np.ndarray, b: np.ndarray) -> float:
            return float(np.exp(-gamma * sum((a - b) ** 2)))

        K = np.array([[similar(a, b) for b in Y] for a in Y])
        mean = X.mean(axis=0)
        ridge = task.params["alpha"] * np.eye(len(K))
        coefficients = np.linalg.solve(K + ridge, X - mean)
        return np.array([mean + [similar(z, y) for y in Y] @ coefficients for z in Z])
    gamma, found = _gamma(task), []
    for z in Z:
        g = b + A @ z
        row, reached = X[np.linalg.norm(Y - z, axis=1).argmin()], -np.inf
        for _ in range(200):
            shares = g * np.exp(-gamma * ((X - row) ** 2).sum(axis=1))
            if shares.sum() <= reached:
                break
            reached, best = shares.sum(), row
            row = shares @ X / shares.sum()
        found.append(best)
    return np.array(found)
