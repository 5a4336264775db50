"""Losses under sliders: what they cost, and by autograd how hard they pull on which pair."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pcclab.plots import explorations
from pcclab.widgets.controls import Steps, choices, linear
from pcclab.widgets.exploring import captioned

BUFFERED = {"translated_relu": "Translated ReLU", "smooth_k2": "Smooth K2"}
RIVALS = ("pearson", "pearson_ranks", "soft_spearman", "kendall", "cosent", "ccc", "cosine_mse")
"""Losses of a similarity and a rating that a scatter shows beside each other."""
_POINTS, _NEAR = 61, 1e-4
_TEMPERATURES = Steps((0.005, 0.0125, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0), "the similarities are divided by it")


def error_points(
    *, slope: float, relu_slope: float, threshold: float, spacing: float, label: int, ends: str
) -> pd.DataFrame:
    """Cost and gradient of both buffered losses over the prediction for one pair.

    Args: as `errors`.
    Returns: columns loss_name, prediction, loss and gradient, the last by autograd.
    """
    import torch

    from pcclab import losses

    at = label * spacing
    # Both sides of every place where a gradient may jump, so that it is drawn as a jump.
    kinks = [kink + side for kink in (0.0, at, at - threshold, at + threshold) for side in (-_NEAR, _NEAR)]
    x = torch.tensor(sorted({*np.linspace(-0.5 * spacing, 2.5 * spacing, _POINTS).tolist(), *kinks}))
    gold = torch.full_like(x, at)
    given: dict[str, Any] = {"threshold": threshold, "interval": spacing, "label_range": (0.0, 2 * spacing)}
    rows = []
    for name, k in (("translated_relu", relu_slope), ("smooth_k2", slope)):
        cost = partial(losses.by_name(name), slope=k, ends=ends, **given)
        prediction = x.clone().requires_grad_()
        # The loss is a mean: times their number, the gradient of each point is that of a pair alone.
        (cost(prediction, gold) * len(x)).backward()
        assert prediction.grad is not None
        with torch.no_grad():
            costs = [float(cost(x[place : place + 1], gold[:1])) for place in range(len(x))]
        rows += list(zip([BUFFERED[name]] * len(x), x.tolist(), costs, prediction.grad.tolist(), strict=True))
    return pd.DataFrame(rows, columns=["loss_name", "prediction", "loss", "gradient"])


def errors(
    *,
    slope: Annotated[float, linear(0.5, 5.0, 0.5, "k of Smooth K2")],
    relu_slope: Annotated[float, linear(0.5, 5.0, 0.5, "k of Translated ReLU")],
    threshold: Annotated[float, linear(0.0, 0.5, 0.05, "x0: errors below it are free; at most half the spacing")],
    spacing: Annotated[float, linear(0.5, 3.0, 0.25, "d: distance of two labels")] = 1.0,
    label: Annotated[int, Steps((0, 1, 2), "the pair's class: its gold is label times spacing")] = 1,
    ends: Annotated[str, choices(("both", "none", "published"), "what is forgiven beyond the first and last label")],
) -> Figure:
    """Translated ReLU and Smooth K2 over the prediction for one pair, and their gradients.

    Raises: ValueError for a threshold above half the spacing.
    Source: STS-Regression, equations 1 and 2 and section 3.3.
    """
    points = error_points(slope=slope, relu_slope=relu_slope, threshold=threshold, spacing=spacing, label=label,
                          ends=ends)  # fmt: skip
    gold = label * spacing
    last = points[points["prediction"] == points["prediction"].max()]
    said = "; ".join(f"{row.loss_name}: {row.loss:.3g} with gradient {row.gradient:.3g}" for row in last.itertuples())
    ax = explorations.error_panels(points, gold=gold, threshold=threshold, labels=[0, spacing, 2 * spacing])
    return captioned(ax, f"gold {gold:g}, free within {threshold:g} of it; at {last['prediction'].iloc[0]:g} {said}")


def list_points(
    student: np.ndarray,
    teacher: np.ndarray,
    *,
    row: int,
    view: float,
    temperature: float,
    student_temperature: float,
    teacher_temperature: float,
    listmle_temperature: float,
) -> pd.DataFrame:
    """How three objectives pull on one row of similarities.

    Args: as `lists`.
    Returns: columns loss_name, loss, item (0 is the sentence's own second view, then the others as the teacher ranks
        them), student, teacher (NaN for the second view) and pull: minus the gradient by the similarity.
    Relations: InfoNCE of one anchor is ListNet whose teacher has all its mass on the positive; so it is computed.
    """
    import torch

    from pcclab import losses

    others = np.delete(np.arange(student.shape[1]), row)
    others = others[np.argsort(-teacher[row, others], kind="stable")]
    with_view = torch.tensor([[view, *student[row, others].tolist()]])
    target = torch.tensor(np.asarray(teacher[row, others], dtype=np.float32))[None]
    positive = torch.zeros_like(with_view)
    positive[0, 0] = 1.0
    tempered: dict[str, Any] = {"student_temperature": student_temperature, "teacher_temperature": teacher_temperature}
    whole: dict[str, Any] = {"student_temperature": temperature, "teacher_temperature": 1e-3, "positive": "keep"}
    terms: dict[str, Callable[[Any], Any]] = {
        "InfoNCE": lambda s: losses.listnet(s, positive, **whole),
        "ListNet": lambda s: losses.listnet(s[:, 1:], target, **tempered),
        "ListMLE": lambda s: losses.listmle(s[:, 1:], target, temperature=listmle_temperature),
    }
    frames = []
    for name, term in terms.items():
        scores = with_view.clone().requires_grad_()
        loss = term(scores)
        loss.backward()
        assert scores.grad is not None
        told = {"loss_name": name, "loss": float(loss.detach()), "item": np.arange(len(others) + 1)}
        seen = {"student": with_view[0].numpy(), "teacher": [np.nan, *target[0].tolist()]}
        frames.append(pd.DataFrame({**told, **seen, "pull": -scores.grad[0].numpy()}))
    return pd.concat(frames, ignore_index=True)


def lists(
    *,
    student: np.ndarray,
    teacher: np.ndarray,
    row: Annotated[int, linear(0, 15, 1, "the sentence whose list it is")] = 0,
    view: Annotated[float, linear(0.5, 1.0, 0.05, "cosine of the sentence's two dropout views")] = 0.9,
    temperature: Annotated[float, _TEMPERATURES],
    student_temperature: Annotated[float, _TEMPERATURES],
    teacher_temperature: Annotated[float, _TEMPERATURES],
    listmle_temperature: Annotated[float, _TEMPERATURES],
) -> Figure:
    """One sentence's similarities to the others, and how InfoNCE, ListNet and ListMLE pull on each at a temperature.

    Args:
        student: (sentences, sentences) cosines of the student; the diagonal is not read.
        teacher: the same of the teacher.
        row: whose list.
        view: cosine of the sentence with its own second view, InfoNCE's positive.
        temperature: InfoNCE's.
        student_temperature, teacher_temperature: ListNet's.
        listmle_temperature: ListMLE's.

    Raises: ValueError for a row that is not there, shapes that differ, or a temperature that is not above 0.
    Source: RankCSE, equations 1, 4 and 5.
    """
    if student.shape != teacher.shape or not 0 <= row < len(student):
        raise ValueError(f"row {row} of shapes {student.shape} and {teacher.shape}: give one square matrix each")
    given = {"student_temperature": student_temperature, "teacher_temperature": teacher_temperature}
    points = list_points(student, teacher, row=row, view=view, temperature=temperature, **given,
                         listmle_temperature=listmle_temperature)  # fmt: skip
    parts = []
    for name, part in points.groupby("loss_name", sort=False):
        hardest = part.loc[part["pull"].abs().idxmax()]
        at = "its second view" if hardest["item"] == 0 else f"the teacher's number {hardest['item']}"
        parts.append(f"{name} {hardest['loss']:.3f}, pulls hardest on {at} ({hardest['pull']:+.3g})")
    return captioned(explorations.list_pulls(points), "; ".join(parts))


def bent_points(
    *, pairs: int, noise: float, bend: float, outlier: float, seed: int = 0, loss: str = ""
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A scatter of similarities over ratings, bent, noisy and with one pair astray, and how the losses see it.

    Args: as `rivals`; every loss is taken, whichever is named.
    Returns: columns gold, similarity, outlier (true for one pair) and a pull a loss, minus its gradient; and columns
        loss_name, loss and share: of all the pulls' sizes the part that is the outlier's.
    """
    import torch

    from pcclab import losses

    draw = np.random.default_rng(seed)
    gold = 5 * np.linspace(0, 1, pairs) ** 1.5  # crowded below, as ratings are: even ones would be their own ranks
    similarity = (gold / 5) ** bend + noise * draw.standard_normal(pairs)
    astray = round(0.9 * (pairs - 1))
    similarity[astray] -= outlier
    scatter = pd.DataFrame({"gold": gold, "similarity": similarity, "outlier": np.arange(pairs) == astray})
    rows = []
    for name in RIVALS:
        scores = torch.tensor(similarity, dtype=torch.float32, requires_grad=True)
        cost = losses.by_name(name)(scores, torch.tensor(gold, dtype=torch.float32))
        cost.backward()
        assert scores.grad is not None
        pull = -scores.grad.numpy()
        scatter[name] = pull
        total = float(np.abs(pull).sum())
        rows.append((name, float(cost.detach()), float(abs(pull[astray])) / total if total else 0.0))
    return scatter, pd.DataFrame(rows, columns=["loss_name", "loss", "share"])


def rivals(
    *,
    loss: Annotated[str, choices(RIVALS, "whose pulls the arrows are")],
    pairs: Annotated[int, Steps((10, 20, 40, 80), "pairs of the batch")] = 40,
    noise: Annotated[float, linear(0.0, 0.5, 0.05, "deviation of the similarities from their curve")],
    bend: Annotated[float, Steps((0.2, 0.33, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0), "power of the monotone map")],
    outlier: Annotated[float, linear(0.0, 2.0, 0.1, "how far one similarity is pushed down")],
    seed: int = 0,
) -> Figure:
    """Pearson's loss and its rivals on a scatter one can bend: by a monotone map, by noise, by one outlier.

    Args:
        loss: whose pulls are drawn, the longest of them as long as the others' longest.
        pairs: in the batch; more of them are rated low than high.
        noise: standard deviation of the similarities.
        bend: the similarities are (gold / 5) to this power before the noise: 1 is a line.
        outlier: taken off the similarity of one pair that is rated high.
        seed: of the noise.

    Source: Pcc-tuning, equation 9, and the comparators of `pcclab.losses`.
    """
    from pcclab import evaluation

    scatter, shares = bent_points(pairs=pairs, noise=noise, bend=bend, outlier=outlier, seed=seed)
    gold, similarity = scatter["gold"].to_numpy(), scatter["similarity"].to_numpy()
    now = shares.set_index("loss_name").loc[loss]
    said = (
        f"Pearson {evaluation.pearson(similarity, gold):.3f}, Spearman {evaluation.spearman(similarity, gold):.3f}; "
        f"{loss}: {now['loss']:.3f}, {100 * now['share']:.1f} % of its pull on the outlier"
    )
    return captioned(explorations.bent_scatter(scatter, shares, loss=loss), said)
