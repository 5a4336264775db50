"""Logistic regressions on subsets of the same rows, hundreds of them solved together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_factor, cho_solve

from pcclab.evaluation.correlation import Undefined
from pcclab.evaluation.folds import Fit, check

ROUGH = 1e-2
"""The tolerance of the solutions at which the curvature is taken."""
MEMORY, ITERATIONS, BLOCK = 20, 500, 1024

_Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
_Divide = Callable[[np.ndarray], np.ndarray]
_Factors = list[list[tuple[np.ndarray, bool]]]
_Steps = list[tuple[np.ndarray, np.ndarray, np.ndarray]]


def lbfgs(
    features: Float[np.ndarray, "rows dim"],
    labels: Int[np.ndarray, " rows"],
    fits: Sequence[Fit],
    strengths: Float[np.ndarray, "fits strengths"],
) -> list[Int[np.ndarray, "strengths test"]]:
    r"""The classes that `solve`'s regressions give each fit's test rows; `dev` is not used. A `folds.Solver`.

    Args:
        strengths: decay :math:`\lambda` of the mean loss, as `probes.senteval` takes it, so that both look for the same
            minimum but for the intercept: :math:`C = 1 / (n \lambda)` over n training rows, and twice that for two
            classes, whose single output stands for two that decay each by itself.

    Raises: as `solve`.
    """
    decays = np.asarray(strengths, dtype=np.float64)
    if not (decays > 0).all():
        raise ValueError(f"a decay is {decays.min():g}: give it above 0")
    sizes = np.array([len(fit.train) for fit in fits])
    weights = solve(features, labels, fits, (2.0 if labels.max() == 1 else 1.0) / (sizes[:, None] * decays))
    predicted = []
    for at, fit in enumerate(fits):
        logits = np.einsum("td,rkd->rtk", features[fit.test], weights[at, :, :, :-1], optimize=True)
        logits += weights[at, :, None, :, -1]
        predicted.append(logits.argmax(axis=2) if weights.shape[2] > 1 else (logits[:, :, 0] > 0).astype(np.int64))
    return predicted


def solve(
    features: Float[np.ndarray, "rows dim"],
    labels: Int[np.ndarray, " rows"],
    fits: Sequence[Fit],
    strengths: Float[np.ndarray, "fits strengths"],
    *,
    tolerance: float = 1e-5,
) -> Float[np.ndarray, "fits strengths outputs dim+1"]:
    r"""Penalised logistic regression of every fit's training rows with every strength of its own.

    .. math:: \min_{w, b}\; C \sum_{i \in \text{train}} \ell(y_i, W x_i + b) + \tfrac12 \lVert W \rVert^2

    The loss is the logistic one of a single output for two classes and cross-entropy for more; the intercept is free.

    All folds are weights of 0 or 1 on the same rows, so a step of all problems is two matrix products with the same
    features, and every problem is close to the one on all rows: L-BFGS starts from that solution (of each strength)
    and in the metric of its curvature, and needs about ten steps. Each problem is convex with one minimum, so that
    where it starts leaves no trace of the test rows in it.

    Args:
        features: finite; no scaling is done.
        labels: 0, 1, ...
        fits: whose `train` is learned.
        strengths: C of each problem, above 0: large is little regularisation.
        tolerance: how far, in parts of a problem's largest weight (or of 1), the next step would move a weight at most.

    Returns: weights with the intercept last; one output for two classes, else one a class.

    Relations: scikit-learn's `LogisticRegression(C=...)` one at a time.

    Raises: Undefined when a fit lacks a class or a problem does not converge; ValueError for a strength not above 0.

    >>> rows, labels = np.array([[-1.0], [1.0], [-2.0], [2.0]]), np.array([0, 1, 0, 1])
    >>> weights = solve(rows, labels, [Fit(np.arange(4), None, np.arange(4))], np.array([[1.0]]))
    >>> weights.shape, weights[0, 0, 0, :1].round(3).tolist()
    ((1, 1, 1, 2), [1.007])
    """
    strengths = np.asarray(strengths, dtype=np.float64)
    if not (strengths > 0).all():
        raise ValueError(f"a strength is {strengths.min():g}: give C above 0")
    classes = check(labels, fits)
    rows = np.column_stack([np.asarray(features, dtype=np.float64), np.ones(len(features))])
    if not np.isfinite(rows).all():
        raise ValueError(f"features of row {int(np.argmin(np.isfinite(rows).all(axis=1)))} are not finite: mend them")
    targets = np.eye(classes)[labels] if classes > 2 else (labels[:, None] == 1).astype(np.float64)
    used = np.zeros((len(rows), len(fits)))
    for at, fit in enumerate(fits):
        used[fit.train, at] = 1
    used /= used.sum(axis=0)
    sizes = np.array([len(fit.train) for fit in fits])
    levels, which = np.unique(strengths, return_inverse=True)
    which = which.reshape(strengths.shape)
    # First all folds at once, one problem a strength, in the metric of a bound on the curvature (Böhning's).
    whole = used.mean(axis=1, keepdims=True)
    penalties = 1.0 / (levels * sizes.mean())
    bound = _gram(rows, whole) * (0.25 if classes == 2 else 0.5)
    shape = (rows.shape[1], len(levels), targets.shape[1])
    factors = [[_factor(bound, penalty)] * shape[2] for penalty in penalties]
    evaluate = _objective(rows, targets, whole, penalties[None])
    near = _minimise(evaluate, np.zeros(shape), _metric(factors, np.arange(len(levels))), max(tolerance, ROUGH))
    factors = _curvatures(rows, whole, near, penalties)
    # Then each fold from there; the columns are the problems, strengths fastest.
    evaluate = _objective(rows, targets, used, 1.0 / (strengths * sizes[:, None]))
    found = _minimise(evaluate, near[:, which.ravel()], _metric(factors, which.ravel()), tolerance)
    return found.transpose(1, 2, 0).reshape(*strengths.shape, targets.shape[1], rows.shape[1])


def _objective(rows: np.ndarray, targets: np.ndarray, used: np.ndarray, penalties: np.ndarray) -> _Evaluate:
    """Mean penalised loss of each problem and its gradient; `used` (rows, fits), `penalties` (fits, strengths)."""
    fits, strengths, outputs = *penalties.shape, targets.shape[1]

    def evaluate(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flat = np.ascontiguousarray(weights).reshape(len(weights), -1)
        loss, gradient = np.zeros((fits, strengths)), np.zeros_like(flat)
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            logits = (rows[part] @ flat).reshape(-1, fits, strengths, outputs)
            target = targets[part][:, None, None, :]
            share = used[part][:, :, None, None]
            losses, residual = _binary(logits, target) if outputs == 1 else _multinomial(logits, target)
            loss += np.einsum("bfr,bf->fr", losses, used[part])
            residual *= share
            gradient += rows[part].T @ residual.reshape(len(residual), -1)
        free = np.append(np.ones(len(weights) - 1), 0.0)[:, None, None]
        shrunk = penalties.reshape(1, -1, 1) * free * weights
        return loss.ravel() + 0.5 * _dot(shrunk, weights), gradient.reshape(weights.shape) + shrunk

    return evaluate


def _binary(logits: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    small = np.exp(-np.abs(logits))
    losses = (np.log1p(small) + np.maximum(logits, 0) - target * logits)[..., 0]
    return losses, np.where(logits >= 0, 1.0, small) / (1 + small) - target


def _multinomial(logits: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    logits = logits - logits.max(axis=-1, keepdims=True)
    grown = np.exp(logits)
    total = grown.sum(axis=-1, keepdims=True)
    return np.log(total[..., 0]) - (logits * target).sum(axis=-1), grown / total - target


def _gram(rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Weighted products of the columns, a block of rows at a time: a second copy of all rows may be too much."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, len(rows), BLOCK):
        part = slice(start, start + BLOCK)
        total += (rows[part] * shares[part]).T @ rows[part]
    return total


def _factor(curvature: np.ndarray, penalty: float) -> tuple[np.ndarray, bool]:
    diagonal = np.append(np.full(len(curvature) - 1, penalty), 1e-10)
    return cho_factor(curvature + np.diag(diagonal), lower=True, check_finite=False)


def _curvatures(rows: np.ndarray, whole: np.ndarray, weights: np.ndarray, penalties: np.ndarray) -> _Factors:
    """The Cholesky factor of each strength's curvature, output by output, at these weights."""
    logits = np.einsum("nd,drk->nrk", rows, weights, optimize=True)
    if logits.shape[2] == 1:
        shares = 1 / (1 + np.exp(-logits))
    else:
        shares = np.exp(logits - logits.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
    spread = shares * (1 - shares) * whole[:, :, None]
    return [
        [_factor(_gram(rows, spread[:, at, k, None]), penalty) for k in range(spread.shape[2])]
        for at, penalty in enumerate(penalties)
    ]


def _metric(factors: _Factors, which: np.ndarray) -> _Divide:
    """Divides each problem's (dim, problems, outputs) vector by the curvature of its strength."""
    members = [np.flatnonzero(which == level) for level in range(len(factors))]

    def divide(vectors: np.ndarray) -> np.ndarray:
        out = np.empty_like(vectors)
        for level, problems in enumerate(members):
            for k, factor in enumerate(factors[level]):
                out[:, problems, k] = cho_solve(factor, vectors[:, problems, k], check_finite=False)
        if out.shape[2] > 1:
            # What all classes share changes no probability and at the minimum is 0: no step may stir it up.
            out -= out.mean(axis=2, keepdims=True)
        return out

    return divide


def _minimise(evaluate: _Evaluate, weights: np.ndarray, divide: _Divide, tolerance: float) -> np.ndarray:
    """L-BFGS on (dim, problems, outputs), each problem with its own steps, until every next step is small."""
    loss, gradient = evaluate(weights)
    steps: _Steps = []
    for _ in range(ITERATIONS):
        direction = _direction(gradient, steps, divide)
        open_ = np.abs(direction).max(axis=(0, 2)) > tolerance * np.maximum(1, np.abs(weights).max(axis=(0, 2)))
        if not open_.any():
            return weights
        direction *= open_[None, :, None]
        slope = _dot(gradient, direction)
        length = np.ones(len(loss))
        for _ in range(40):
            moved = weights + length[:, None] * direction
            new_loss, new_gradient = evaluate(moved)
            # The slack is what summing the loss rounds away; near the minimum nothing else is left of a decrease.
            worse = new_loss > loss + 1e-4 * length * slope + 1e-13 * (1 + np.abs(loss))
            if not worse.any():
                break
            length[worse] /= 2
        else:
            raise Undefined(f"{int(worse.sum())} of {len(loss)} regressions find no lower loss: scale the features")
        step, change = moved - weights, new_gradient - gradient
        bend = _dot(step, change)
        steps = [*steps, (step, change, np.where(bend > 0, 1 / np.where(bend > 0, bend, 1), 0))][-MEMORY:]
        weights, loss, gradient = moved, new_loss, new_gradient
    raise Undefined(
        f"{int(open_.sum())} of {len(loss)} regressions have not converged after {ITERATIONS} steps: scale the features"
    )


def _direction(gradient: np.ndarray, steps: _Steps, divide: _Divide) -> np.ndarray:
    """The two loops of L-BFGS; a problem that did not move in a step has weight 0 in it."""
    found, back = -gradient, []
    for step, change, inverse in reversed(steps):
        share = inverse * _dot(step, found)
        found = found - share[:, None] * change
        back.append(share)
    found = divide(found)
    for (step, change, inverse), share in zip(steps, reversed(back), strict=True):
        found = found + (share - inverse * _dot(change, found))[:, None] * step
    return found


def _dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.einsum("dpk,dpk->p", first, second)
