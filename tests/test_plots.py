from __future__ import annotations

import functools
import io
import itertools
import math
import re
import zlib
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from scipy import stats

from pcclab import ceiling, plots
from pcclab.plots import style

TASKS = ["sts12", "sts13", "stsb", "sickr"]
FORMULAS: tuple[ceiling.Formula, ...] = ("paper", "midrank")


def shares() -> pd.DataFrame:
    return pd.DataFrame(
        {"share": p, "formula": formula, "spearman": ceiling.from_shares([p, 1 - p], formula=formula)}
        for formula in FORMULAS
        for p in np.linspace(0.01, 0.99, 99)
    )


def levels() -> pd.DataFrame:
    return pd.DataFrame(
        {"levels": m, "formula": formula, "spearman": ceiling.levels(m, formula=formula)}
        for formula in FORMULAS
        for m in range(2, 8)
    )


def hardening() -> pd.DataFrame:
    gold, rows = np.arange(100), []
    for places, h in itertools.product((2, 6), (1, 10, 100, 1e4)):
        scores = ceiling.sigmoid_scorer(gold, h, decimals=places)
        rows.append({"hardness": h, "decimals": places, "spearman": ceiling.spearman(scores, gold)})
    return pd.DataFrame(rows)


def scorers() -> pd.DataFrame:
    gold = np.linspace(0, 5, 50)
    parts = ({"gold": gold, "score": ceiling.sigmoid_scorer(gold, h), "hardness": h} for h in (4, 40))
    return pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)


def scores() -> pd.DataFrame:
    runs = {"baseline": [72.4, 80.6, 82.0, 77.2], "filter": [73.2, 81.7, 83.4, 83.1], "keep": [75.1, 87.2, 85.7, 83.0]}
    return pd.DataFrame(
        {"task": task, "run": run, "spearman": value, "low": value - 1, "high": value + 1}
        for run, values in runs.items()
        for task, value in zip(TASKS, values, strict=True)
    )


def training() -> pd.DataFrame:
    steps = np.arange(1, 21)
    return pd.DataFrame({"step": steps, "loss": 1 / steps, "dev": np.where(steps % 5 == 0, 80 + steps / 10, math.nan)})


def cosines() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    gold = np.round(draw.uniform(0, 5, 300), 1)
    return pd.DataFrame({"gold": gold, "similarity": np.tanh(gold / 4) + draw.normal(0, 0.1, 300)})


def leaked() -> pd.DataFrame:
    return pd.DataFrame(
        [[32.2, 39.8, 0.9, 0.0], [5.0, 90.0, 1.0, 0.0]], index=["stsb train", "stsb dev"], columns=TASKS
    )


def gold() -> pd.DataFrame:
    return pd.DataFrame({"task": TASKS, "spearman": [0.8679, 0.8668, 0.8668, 0.8665]})


def errors() -> pd.DataFrame:
    prediction = np.linspace(-1, 3, 81)
    away, side = np.abs(prediction - 1), np.sign(prediction - 1)
    beyond = np.maximum(0, away - 0.25)
    curves = {"MSE": (away**2, 2 * side * away), "Smooth K2, published": (2 * beyond**2, 4 * side * beyond)}
    parts = [
        pd.DataFrame({"loss_name": name, "prediction": prediction, "loss": loss, "gradient": gradient})
        for name, (loss, gradient) in curves.items()
    ]
    return pd.concat(parts, ignore_index=True)


def race() -> pd.DataFrame:
    ends = {"cosine_mse": 79.0, "pearson": 80.5, "soft_spearman on the permutahedron, and InfoNCE": 80.0}
    return pd.DataFrame(
        {"loss": name, "score": mean + aside, "seed": seed}
        for name, mean in ends.items()
        for seed, aside in enumerate((-0.3, 0.1, 0.2))
    )


def ablation() -> pd.DataFrame:
    return pd.DataFrame(
        {"loss": name, "batch size": size, "score": start + np.log2(size) / 10 + aside}
        for name, start in (("pearson", 80.0), ("cosent", 79.0))
        for size in (256, 8, 64)
        for aside in (-0.1, 0.0, 0.1)
    )


def part_gains() -> pd.DataFrame:
    rows = []
    for task, part, (run, gain) in itertools.product(
        [*TASKS, "average"], ("seen", "unseen"), {"filter": 2.0, "keep": 3.0}.items()
    ):
        told = "12 pairs: fewer than 30" if (task, part) == ("stsb", "seen") else ""
        value = math.nan if told else gain + (7 if (run, part) == ("keep", "seen") else 0)
        ends = {"low": value - 1, "high": value + 1, "seed_low": value - 0.2, "seed_high": value + 0.2}
        rows.append({"gain": value, "task": task, "part": part, "leakage": run, "pairs": 1200, "reason": told, **ends})
    return pd.DataFrame(rows).sort_values("reason", kind="stable", ignore_index=True)


def differences() -> pd.DataFrame:
    rows = [
        (task, model, value) for task in ("mr", "trec", "average") for model, value in (("one", 0.4), ("two", -1.6))
    ]
    frame = pd.DataFrame(rows, columns=["task", "model", "difference"])
    low, high = frame["difference"] - 0.9, frame["difference"] + 0.9
    return frame.assign(low=low, high=high, differs=(low > 0) | (high < 0))


def chosen() -> pd.DataFrame:
    scores = {"dev": 80.0, "last": 79.9, "test": 80.2, "task": 80.4}
    return pd.DataFrame(
        {"leakage": level, **{rule: seed + score for rule, score in scores.items()}, "seed": seed}
        for level in ("filter", "keep")
        for seed in range(3)
    )


MODELS = ["minilm", "stage 1", "stage 2 filter", "stage 2 keep"]


def planes() -> pd.DataFrame:
    draw = np.random.default_rng(1)
    named = [
        {
            "model": name,
            "family": name[:7],
            "alignment": 0.27 - 0.02 * i,
            "uniformity": -3.8 + 0.2 * i,
            "average": 78.0 + i,
        }
        for i, name in enumerate(MODELS)
    ]
    crowd = [
        {"model": f"regression, seed {i}", "family": "regression", "alignment": 0.24 + draw.normal(0, 0.005),
         "uniformity": -3.5 + draw.normal(0, 0.03), "average": math.nan if i % 3 else 80.0}
        for i in range(12)
    ]  # fmt: skip
    return pd.DataFrame([*named, *crowd])


def grouped(models: int = 1) -> pd.DataFrame:
    groups = ["0-1", "1-2", "2-3", "3-4", "4-5"]
    frame = cosines().assign(gold=lambda part: part["gold"].clip(0, 4.99))
    labels = pd.Categorical([groups[int(gold)] for gold in frame["gold"]], groups, ordered=True)
    parts = (frame.assign(model=name, group=labels, similarity=frame["similarity"] * (1 + i / 9))
             for i, name in enumerate(MODELS[:models]))  # fmt: skip
    return pd.concat(parts, ignore_index=True)[["similarity", "model", "group"]]


def effective() -> pd.DataFrame:
    return pd.DataFrame(
        {"model": name, "task": task, "levels": value, "levels_low": value - 0.05, "levels_high": value + 0.05,
         "share_within": 0.24 + value / 100, "share_within_low": 0.23, "share_within_high": 0.29}
        for i, name in enumerate([*MODELS, "other 1", "other 2"])
        for j, task in enumerate(TASKS)
        for value in [1.5 + 0.15 * i + 0.1 * j]
    )  # fmt: skip


def ranks() -> pd.DataFrame:
    ends = {"minilm": [40.1, 42.6, 66.4, 58.4], "stage 2 filter": [42.0, 44.0, 67.0, 60.0]}
    levels = {"kendall": (0.0, math.nan), "ndcg": (45.0, 85.0)}
    return pd.DataFrame(
        {"task": task, "model": model, "measure": measure, "value": value / (2 if up else 1) + up, "lists": 95,
         "low": value / (2 if up else 1) + up - 2, "high": value / (2 if up else 1) + up + 1, "constant": constant}
        for measure, (up, constant) in levels.items()
        for model, values in ends.items()
        for task, value in zip([*TASKS[:3], "average"], values, strict=True)
    )  # fmt: skip


def trainings(settings: int = 2) -> pd.DataFrame:
    return pd.DataFrame(
        {"setting": f"s{setting}", "seed": seed, "step": step, "value": setting + seed / 10 + step}
        for setting in range(settings)
        for seed in range(2)
        for step in (1, 2, 3)
    )


def costs() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": ["Pcc stage 1", "Pcc stage 1", "Pcc stage 2"],
            "path": ["one graph", "cached", "one graph"],
            "memory": [3.0, 1.0, 2.0],
            "minutes": [60.0, 90.0, 2.0],
        }
    )


PLOTS: dict[str, tuple[Callable[..., Axes], Callable[[], pd.DataFrame], float]] = {
    "ceiling_over_share": (plots.ceiling_over_share, shares, plots.COLUMN),
    "ceiling_levels": (plots.ceiling_levels, levels, plots.COLUMN),
    "gold_ceilings": (plots.gold_ceilings, gold, plots.COLUMN),
    "hardening": (plots.hardening, hardening, plots.COLUMN),
    "scorer_scatter": (plots.scorer_scatter, scorers, plots.COLUMN),
    "stage_levels": (plots.stage_levels, scores, plots.TEXT),
    "training_curve": (plots.training_curve, training, plots.COLUMN),
    "learning_curves": (plots.learning_curves, trainings, plots.COLUMN),
    "similarity_by_gold": (plots.similarity_by_gold, cosines, plots.COLUMN),
    "rank_scores": (plots.rank_scores, ranks, plots.TEXT),
    "leakage_matrix": (plots.leakage_matrix, leaked, plots.TEXT),
    "plane": (functools.partial(plots.plane, labels=MODELS), planes, plots.COLUMN),
    "cosine_groups": (plots.cosine_groups, grouped, plots.COLUMN),
    "effective_levels": (functools.partial(plots.effective_levels, models=MODELS), effective, plots.TEXT),
    "task_differences": (
        functools.partial(plots.task_differences, by="model", label="difference"),
        differences,
        plots.TEXT,
    ),
    "error_curves": (functools.partial(plots.error_curves, gold=1, threshold=0.25), errors, plots.COLUMN),
    "part_gains": (plots.part_gains, part_gains, plots.TEXT),
    "chosen_steps": (plots.chosen_steps, chosen, plots.COLUMN),
    "race_intervals": (functools.partial(plots.race_intervals, baseline=78.87), race, plots.COLUMN),
    "ablation_lines": (functools.partial(plots.ablation_lines, x="batch size", by="loss"), ablation, plots.COLUMN),
    "cost_pairs": (plots.cost_pairs, costs, plots.TEXT),
}
every = pytest.mark.parametrize("name", PLOTS)


def figure(ax: Axes) -> Figure:
    whole = ax.get_figure(root=True)
    assert whole is not None
    return whole


def saved(ax: Axes, kind: str) -> bytes:
    buffer = io.BytesIO()
    with plots.paper_style():
        figure(ax).savefig(buffer, format=kind, metadata={"CreationDate": None} if kind == "pdf" else {})
    return buffer.getvalue()


def words(ax: Axes) -> list[str]:
    figure(ax).draw_without_rendering()
    return [text.get_text() for text in figure(ax).findobj(Text) if isinstance(text, Text) and text.get_text()]


# What holds for every figure


def test_every_public_plot_is_tested_here() -> None:
    assert set(plots.__all__) == {*PLOTS, "COLUMN", "TEXT", "paper_style"}


@every
def test_prints_at_its_width_with_embedded_fonts(name: str) -> None:
    draw, frame, width = PLOTS[name]
    pdf = saved(draw(frame()), "pdf")
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", pdf)
    assert box is not None
    assert float(box[1]) / 72 == pytest.approx(width, abs=0.01)
    content = pdf + b"".join(_inflated(pdf))
    assert b"STIXGeneral" in content
    assert b"/Type3" not in content
    assert b"DejaVu" not in content


def _inflated(pdf: bytes) -> list[bytes]:
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    return [zlib.decompress(stream) for stream in streams if stream[:1] == b"x"]


@every
@pytest.mark.parametrize("kind", ["pdf", "png"])
def test_same_numbers_give_the_same_bytes(name: str, kind: str) -> None:
    draw, frame, _ = PLOTS[name]
    first = saved(draw(frame()), kind)
    with matplotlib.rc_context({"lines.markeredgewidth": 3, "axes.facecolor": "red", "xtick.direction": "in"}):
        assert saved(draw(frame()), kind) == first, "whatever the caller's settings are"


@every
def test_leaves_no_trace(name: str) -> None:
    from matplotlib import pyplot

    draw, frame, _ = PLOTS[name]
    settings, given_frame = dict(matplotlib.rcParams), frame()
    draw(given_frame)
    assert dict(matplotlib.rcParams) == settings
    assert pyplot.get_fignums() == []
    pd.testing.assert_frame_equal(given_frame, frame())


@every
def test_draws_where_it_is_told(name: str) -> None:
    draw, frame, _ = PLOTS[name]
    left, right = Figure(figsize=(6, 3)).subplots(1, 2)
    assert draw(frame(), right) is right
    assert right.has_data()
    assert not left.has_data()


@every
def test_nothing_is_cut_off(name: str) -> None:
    draw, frame, _ = PLOTS[name]
    ax = draw(frame())
    page = figure(ax)
    saved(ax, "png")
    shown = [t for t in page.findobj(Text) if isinstance(t, Text) and t.get_visible() and t.get_text().strip()]
    inside = page.get_window_extent().padded(2)
    axis_labels = {label for axes in page.axes for label in [*axes.get_xticklabels(), *axes.get_yticklabels()]}
    boxes = [text.get_window_extent() for text in shown if text not in axis_labels]
    assert len(boxes) >= 2 or name == "leakage_matrix"
    assert all(inside.containsx(box.x0) and inside.containsx(box.x1) for box in boxes)
    assert all(inside.containsy(box.y0) and inside.containsy(box.y1) for box in boxes)


@every
def test_names_the_columns_it_needs(name: str) -> None:
    draw, frame, _ = PLOTS[name]
    if name != "leakage_matrix":
        with pytest.raises(ValueError, match=r"with \['other'\]: this plot needs"):
            draw(pd.DataFrame({"other": [1, 2]}))
    with pytest.raises(ValueError, match="frame of 0 rows"):
        draw(frame().head(0))


@pytest.mark.parametrize("name", sorted(set(PLOTS) - {"training_curve"}))
def test_refuses_an_undefined_number(name: str) -> None:
    draw, frame, _ = PLOTS[name]
    damaged = frame()
    column = damaged.select_dtypes("number").columns[0]
    damaged.loc[damaged.index[1], column] = math.nan
    with pytest.raises(ValueError, match=f"{column} of row .* is undefined"):
        draw(damaged)


def test_rank_scores_say_what_no_order_gets_and_how_many_lists_there_are() -> None:
    ax = plots.rank_scores(ranks())
    upper, lower = figure(ax).axes
    dashed = {
        panel: [line.get_ydata()[0] for line in panel.lines if line.get_color() == style.GREY]
        for panel in (upper, lower)
    }
    assert dashed == {upper: [0.0] * 4, lower: [85.0] * 4}
    assert next(text.get_text() for text in lower.get_xticklabels()) == "STS12\n95 lists"
    legend = upper.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["minilm", "stage 2 filter", "no order"]
    alone = plots.rank_scores(ranks(), measure="ndcg")
    assert len(figure(alone).axes) == 1 and "NDCG" in alone.get_ylabel()
    assert not [line for line in plots.rank_scores(ranks().drop(columns="constant"), measure="ndcg").lines
                if line.get_color() == style.GREY]  # fmt: skip


# The style


def test_series_differ_without_colour() -> None:
    assert len({look.marker for look in style.LOOKS}) == len(style.LOOKS) == len({look.line for look in style.LOOKS})


def test_style_ends_with_its_block() -> None:
    before = dict(matplotlib.rcParams)
    with plots.paper_style():
        inside = matplotlib.rcParams
        assert (inside["pdf.fonttype"], inside["ps.fonttype"], inside["font.size"]) == (42, 42, 8)
        assert inside["savefig.bbox"] is None, "a tight box would change the printed width"
        assert "STIXGeneral" in FontProperties().get_name()
    assert dict(matplotlib.rcParams) == before


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.floats(0, 10))
def test_spread_keeps_order_distance_and_centre(places: list[float], gap: float) -> None:
    moved = np.array(style.spread(places, gap))
    order = np.argsort(places, kind="stable")
    assert (np.diff(moved[order]) >= gap - 1e-9).all()
    assert moved.sum() == pytest.approx(sum(places), abs=1e-6)


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True))
def test_spread_leaves_what_is_far_enough(places: list[int]) -> None:
    assert style.spread(places, 1.0) == pytest.approx(places)


# What each figure shows


def test_share_curve_marks_both_maxima() -> None:
    assert {"equation 2: 0.875", "mid-ranks: 0.866"} <= set(words(plots.ceiling_over_share(shares())))


def test_gold_ceilings_stand_beside_both_limits() -> None:
    ax = plots.gold_ceilings(gold())
    assert {"0.8679", "mid-ranks 0.866", "equation 2 0.875", "STS12", "SICK-R"} <= set(words(ax))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["STS12", "STS13", "STS-B", "SICK-R"]


@pytest.mark.parametrize("lowest", [0.866, 0.3])
def test_hardening_shows_the_whole_curve(lowest: float) -> None:
    ax = plots.hardening(pd.DataFrame({"hardness": [1.0, 10.0], "spearman": [1.0, lowest]}))
    assert ax.get_ylim()[0] < lowest
    assert horizontals(ax) == pytest.approx([ceiling.MIDRANK_LIMIT, ceiling.PAPER_LIMIT])


def horizontals(ax: Axes) -> list[float]:
    lines: list[Any] = [line.get_ydata() for line in ax.lines]
    return sorted(float(y[0]) for y in lines if len(y) == 2 and y[0] == y[1])


def test_key_figure_shows_runs_tasks_and_both_ceilings() -> None:
    ax = plots.stage_levels(scores())
    assert horizontals(ax) == pytest.approx([100 * math.sqrt(3) / 2, 87.5])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["STS12", "STS13", "STS-B", "SICK-R", "Avg."]
    assert {"baseline 78.05", "filter 80.35", "keep 82.75"} <= set(words(ax))


def test_key_figure_takes_a_given_average_as_it_is() -> None:
    rows = pd.DataFrame({"task": "Avg.", "run": ["baseline", "filter", "keep"], "spearman": [78.87, 80.83, 84.3]})
    shown = words(plots.stage_levels(pd.concat([scores(), rows], ignore_index=True).drop(columns=["low", "high"])))
    assert {"baseline 78.87", "filter 80.83", "keep 84.30"} <= set(shown)


def test_key_figure_keeps_its_labels_apart() -> None:
    frame = scores().assign(spearman=80.0)
    ax = plots.stage_levels(frame)
    saved(ax, "png")
    labels = sorted((t.get_window_extent() for t in ax.texts if t.get_text().endswith("80.00")), key=lambda box: box.y0)
    assert len(labels) == 3
    assert all(low.y1 <= high.y0 + 1 for low, high in itertools.pairwise(labels))


def test_training_curve_has_an_axis_for_each_quantity() -> None:
    ax = plots.training_curve(training())
    loss, dev = figure(ax).axes
    assert (loss.get_ylabel(), dev.get_ylabel()) == ("training loss", "dev Spearman")
    assert np.asarray(dev.lines[0].get_xdata()).tolist() == [5, 10, 15, 20]
    assert len(figure(plots.training_curve(training().drop(columns="dev"))).axes) == 1


def test_every_pair_is_in_one_group() -> None:
    frame = cosines()
    shown = words(plots.similarity_by_gold(frame))
    groups = np.floor(frame["gold"] + 0.5).value_counts()
    assert {f"{count}" for count in groups} <= set(shown)
    assert groups.sum() == len(frame)


def test_one_cosine_for_all_pairs_is_still_a_figure() -> None:
    assert plots.similarity_by_gold(cosines().assign(similarity=0.5)).has_data()


def test_leakage_cells_are_written_out() -> None:
    shown = words(plots.leakage_matrix(leaked()))
    assert {"32.2", "39.8", "0.9", "90.0", "STS-B train", "STS-B dev"} <= set(shown)
    assert shown.count("0") == 2


def drawn(line: Any) -> list[list[float]]:
    return [list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))]


def ranges(ax: Axes) -> list[tuple[float, ...]]:
    """Both ends of every interval, rounded, as drawn."""
    found = [part for bars in ax.collections if isinstance(bars, LineCollection) for part in bars.get_segments()]
    return [tuple(np.asarray(part).round(9).ravel().tolist()) for part in found]


def test_error_curves_are_the_numbers_given() -> None:
    frame = errors()
    upper = plots.error_curves(frame, gold=1, threshold=0.25, labels=(0, 2))
    panels = figure(upper).axes
    assert panels[0] is upper
    for panel, kind in zip(panels, ("loss", "gradient"), strict=True):
        named = {str(line.get_label()): drawn(line) for line in panel.lines if len(drawn(line)[0]) > 2}
        assert list(named) == ["MSE", "Smooth K2, published"]
        for name, part in frame.groupby("loss_name"):
            assert named[str(name)] == [part["prediction"].tolist(), part[kind].tolist()]
        assert panel.get_ylabel() == kind
    assert panels[1].get_xlabel() == "prediction"


@pytest.mark.parametrize("value", ["loss", "gradient"])
def test_one_error_curve_needs_only_its_own_column(value: Any) -> None:
    frame = errors()[["loss_name", "prediction", value]]
    ax = plots.error_curves(frame, value=value)
    assert (figure(ax).axes, ax.get_ylabel()) == ([ax], value)
    with pytest.raises(ValueError, match="this plot needs"):
        plots.error_curves(frame)


def test_error_curves_on_given_axes_are_the_losses() -> None:
    assert plots.error_curves(errors(), Figure().add_subplot()).get_ylabel() == "loss"


def test_a_buffer_lies_around_gold() -> None:
    (band,) = plots.error_curves(errors(), gold=1, threshold=0.25).patches
    assert band.get_extents().transformed(band.axes.transData.inverted()).intervalx == pytest.approx([0.75, 1.25])  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"threshold is 0\.25 but gold is not given"):
        plots.error_curves(errors(), threshold=0.25)


def test_race_is_ordered_by_the_mean_and_says_it() -> None:
    ax = plots.race_intervals(race(), baseline=78.87)
    shown = [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()]
    assert shown == ["Pearson", "soft Spearman on the permutahedron, and InfoNCE", "cosine MSE"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the best is on top"
    assert {"80.50", "80.00", "79.00", "baseline 78.87"} <= set(words(ax))


def test_race_shows_means_seeds_and_students_interval() -> None:
    ax = plots.race_intervals(race())
    seeds, means = ax.lines
    assert drawn(means) == [pytest.approx([80.5, 80.0, 79.0]), [0, 1, 2]]
    assert sorted(drawn(seeds)[0]) == sorted(race()["score"])
    assert sorted({round(y) for y in drawn(seeds)[1]}) == [0, 1, 2]
    scores = race().groupby("loss")["score"].apply(list)
    for (low, _, high, row), name in zip(
        ranges(ax), scores.sort_values(key=lambda s: -s.map(np.mean)).index, strict=True
    ):
        known = stats.ttest_1samp(scores[name], 0).confidence_interval(0.95)
        assert (low, high) == pytest.approx(tuple(known))
        assert drawn(means)[0][int(row)] == pytest.approx(np.mean(scores[name]))


def test_a_method_with_one_seed_has_no_interval() -> None:
    ax = plots.race_intervals(race().drop_duplicates("loss"))
    assert all(low == high for low, _, high, _ in ranges(ax))


def test_race_takes_a_table_of_methods_as_it_is() -> None:
    frame = pd.DataFrame({"method": ["a", "b"], "mean": [1.0, 2.0], "low": [0.5, 1.9], "high": [1.1, 2.5]})
    ax = plots.race_intervals(frame, by="method")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]
    assert ranges(ax) == [(1.9, 0, 2.5, 0), (0.5, 1, 1.1, 1)]
    with pytest.raises(ValueError, match=r"needs rows and \['loss', 'mean', 'low', 'high'\]"):
        plots.race_intervals(frame)


@pytest.mark.parametrize("log", [False, True])
def test_ablation_has_a_line_a_group_through_its_means(log: bool) -> None:
    ax = plots.ablation_lines(ablation(), x="batch size", by="loss", log=log)
    assert ax.get_xscale() == ("log" if log else "linear")
    assert {str(line.get_label()): drawn(line) for line in ax.lines} == {
        "pearson": [[8, 64, 256], pytest.approx([80.3, 80.6, 80.8])],
        "cosent": [[8, 64, 256], pytest.approx([79.3, 79.6, 79.8])],
    }
    half = float(stats.t.ppf(0.975, 2)) * 0.1 / math.sqrt(3)
    assert ranges(ax)[0] == pytest.approx((8, 80.3 - half, 8, 80.3 + half))
    assert len(ranges(ax)) == 6
    assert {"8", "64", "256", "batch size", "pearson", "cosent"} <= set(words(ax))


def test_ablation_intervals_stand_side_by_side_within_the_axes() -> None:
    ax = plots.ablation_lines(ablation().assign(score=lambda part: part["score"] % 1), x="batch size", by="loss")
    saved(ax, "png")
    ends = [line.get_transform().transform((8.0, 80.0))[0] for line in ax.lines]
    assert 72 * (ends[1] - ends[0]) / figure(ax).dpi == pytest.approx(2.5)
    low, high = ax.get_xlim()
    assert -20 < low < 8 and 256 < high < 284


def test_ablation_over_words_keeps_their_order() -> None:
    frame = pd.DataFrame({"template": ["STH", "EOL", "SUM"], "score": [3.0, 1.0, 2.0]})
    ax = plots.ablation_lines(frame, x="template")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["STH", "EOL", "SUM"]
    assert drawn(ax.lines[0]) == [[0, 1, 2], [3, 1, 2]]
    assert ax.get_legend() is None
    with pytest.raises(ValueError, match="template holds 'STH': a logarithmic axis takes positive numbers"):
        plots.ablation_lines(frame, x="template", log=True)
    with pytest.raises(ValueError, match="k holds 0"):
        plots.ablation_lines(pd.DataFrame({"k": [0, 1], "score": [1.0, 2.0]}), x="k", log=True)


@given(
    st.lists(
        st.text("abcdefgh ", min_size=1, max_size=30).map(str.strip).filter(bool), min_size=1, max_size=6, unique=True
    )
)
@settings(max_examples=15, deadline=None)
def test_a_legend_fits_its_page(names: list[str]) -> None:
    frame = pd.DataFrame({"k": 1.0, "score": 80.0 + place, "by": name} for place, name in enumerate(names))
    ax = plots.ablation_lines(frame, x="k", by="by")
    page = figure(ax)
    page.draw_without_rendering()
    legend = ax.get_legend()
    assert legend is not None
    box = legend.get_window_extent()
    assert page.bbox.x0 <= box.x0 and box.x1 <= page.bbox.x1 + 1 and box.y1 <= page.bbox.y1 + 1


def test_gains_stand_by_part_with_both_intervals_on_one_scale() -> None:
    ax = plots.part_gains(part_gains(), parts={"unseen": "not", "seen": "trained on"})
    left, right = figure(ax).axes
    assert left is ax and (left.get_title(loc="left"), right.get_title(loc="left")) == ("not", "trained on")
    assert left.get_xlim() == right.get_xlim() and left.get_ylim() == right.get_ylim()
    (filtered, _), (_, kept) = (panel.lines[2:] for panel in (left, right))  # behind the zero and the rule
    assert drawn(filtered)[0] == [2.0] * 5
    assert drawn(kept)[0] == [10.0] * 4  # without the test that is undefined there
    thin, thick = right.collections[2:4]
    assert isinstance(thin, LineCollection) and isinstance(thick, LineCollection)
    assert [tuple(part[:, 0]) for part in thin.get_segments()] == [(9.0, 11.0)] * 4
    assert thick.get_segments()[0][:, 0] == pytest.approx([9.8, 10.2])
    said = words(ax)
    assert {"+10.0", "+3.0", "+2.0", "fewer than 30", "1,200", "STS-B", "average"} <= set(said)
    assert said.count("fewer than 30") == 1
    rows = [label.get_text() for label in left.get_yticklabels()]
    assert rows[-1] == "average" and left.yaxis_inverted()


def test_a_gain_may_be_undefined_only_with_a_reason() -> None:
    frame = part_gains().assign(reason="")
    with pytest.raises(ValueError, match="gain of row .* is undefined"):
        plots.part_gains(frame)


def test_choices_stand_beside_that_on_clean_pairs() -> None:
    ax = plots.chosen_steps(chosen())
    points = {str(line.get_label()): drawn(line)[0] for line in ax.lines[1:]}
    assert points["chosen on clean pairs"] == [0] * 6
    assert points["chosen on the tests"] == pytest.approx([0.2] * 6)
    assert points["last step"] == pytest.approx([-0.1] * 6)
    assert {"80.00", "82.00", "filter, seed 0", "keep, seed 2"} <= set(words(ax))


def test_ledgers_stand_below_each_other_under_their_keys() -> None:
    ax = plots.leakage_matrix(pd.concat({"the pair": leaked(), "a sentence": leaked() / 2}))
    said = words(ax)
    assert {"the pair", "a sentence"} <= set(said)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["STS-B train", "STS-B dev"] * 2
    assert said.count("90.0") == said.count("45.0") == 1
    heights = {text.get_text(): text.get_window_extent().y0 for text in ax.texts}
    assert heights["the pair"] > heights["90.0"] > heights["a sentence"] > heights["45.0"]


@pytest.mark.parametrize("crowded", [False, True])
def test_names_in_the_plane_cover_neither_each_other_nor_a_point(crowded: bool) -> None:
    frame = planes()
    if crowded:  # twelve names in one heap
        frame["average"] = 80.0
    names = list(frame["model"]) if crowded else MODELS
    ax = plots.plane(frame, labels=names)
    saved(ax, "png")
    # The text's own box: the extent of one with a line to its point takes the line in.
    found = {text.get_text(): Text.get_window_extent(text) for text in ax.texts if text.get_text() in names}
    assert len(found) == len(names)
    for one, other in itertools.combinations(found.values(), 2):
        shared = one.intersection(one, other)
        assert shared is None or shared.width * shared.height < 0.08 * min(b.width * b.height for b in (one, other))
    at = ax.transData.transform(frame[["uniformity", "alignment"]].to_numpy())
    assert sum(box.contains(x, y) for box in found.values() for x, y in at) == 0


def test_the_plane_paints_scores_and_leaves_unknown_ones_hollow() -> None:
    ax = plots.plane(planes(), labels=[])
    painted = np.concatenate([np.asarray(part.get_array()) for part in ax.collections if part.get_array() is not None])
    assert sorted(painted) == sorted(planes()["average"].dropna())
    hollow = [part for part in ax.collections if part.get_array() is None]
    assert sum(len(part.get_offsets()) for part in hollow) == planes()["average"].isna().sum()
    assert all(tuple(np.asarray(part.get_facecolor())[0]) == (1, 1, 1, 1) for part in hollow)
    assert {"no recorded score", "stage 1", "regression", r"average STS, $\rho \times 100$"} <= set(words(ax))
    places = np.concatenate([np.asarray(part.get_offsets()) for part in ax.collections])
    assert {tuple(x) for x in places.round(9)} == {
        tuple(x) for x in planes()[["uniformity", "alignment"]].to_numpy().round(9)
    }
    unknown = plots.plane(planes().drop(columns=["average", "family"]))
    assert len(figure(unknown).axes) == 1 and not figure(unknown).legends
    with pytest.raises(ValueError, match="labels name 'stage 3', which is no model here"):
        plots.plane(planes(), labels=["stage 3"])


def test_one_score_alone_is_still_painted() -> None:
    ax = plots.plane(planes().head(1))
    assert len(figure(ax).axes) == 2 and "minilm" in words(ax)


def test_cosine_groups_share_their_axes_and_mark_quartiles() -> None:
    frame = grouped(4)
    panels = figure(plots.cosine_groups(frame)).axes
    assert [panel.get_title(loc="left") for panel in panels] == MODELS
    assert len({panel.get_xlim() for panel in panels}) == len({panel.get_ylim() for panel in panels}) == 1
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["0–1", "1–2", "2–3", "3–4", "4–5"]
    for panel, model in zip(panels, MODELS, strict=True):
        for row, group in enumerate(frame["group"].cat.categories):
            values = frame.loc[(frame["model"] == model) & (frame["group"] == group), "similarity"]
            drawn_rows = [drawn(line)[0] for line in panel.lines if drawn(line)[1][0] == row]
            assert drawn_rows == [
                pytest.approx(values.quantile([0.25, 0.75]).tolist()),
                pytest.approx([values.median()]),
            ]
    with pytest.raises(ValueError, match="one Axes holds one model, there are 2"):
        plots.cosine_groups(grouped(2), Figure().add_subplot())


@pytest.mark.parametrize("models", [2, 4])
def test_several_panels_take_the_width_of_the_text(models: int) -> None:
    page = figure(plots.cosine_groups(grouped(models)))
    assert page.get_figwidth() == plots.TEXT


def test_an_empty_group_and_a_collapsed_model_are_drawn_as_they_are() -> None:
    frame = grouped()
    frame = frame[frame["group"] != "2-3"].assign(similarity=1.0)
    ax = plots.cosine_groups(frame)
    assert len(ax.get_yticks()) == 5
    assert sorted({drawn(line)[1][0] for line in ax.lines}) == [0, 1, 3, 4]


def test_levels_stand_over_the_share_with_their_lines() -> None:
    upper = plots.effective_levels(effective(), models=MODELS)
    panels = figure(upper).axes
    assert panels[0] is upper and [panel.get_ylabel() for panel in panels] == ["effective levels", "share within"]
    expected = [(1 - rho**2) ** -0.5 for rho in (0.75, ceiling.MIDRANK_LIMIT, ceiling.PAPER_LIMIT)]
    assert horizontals(upper) == pytest.approx(expected) and expected[1] == pytest.approx(2)
    assert horizontals(panels[1]) == [0]
    shown = set(words(upper))
    assert {"STS-B", "SICK-R", "2 other models", "no binary trait", "two values"} <= shown
    for kind, panel in zip(("levels", "share_within"), panels, strict=True):
        found = {str(line.get_label()): sorted(drawn(line)[1]) for line in panel.lines}
        for model in MODELS:
            assert found[model] == pytest.approx(sorted(effective().query("model == @model")[kind]))
        rest = effective()[~effective()["model"].isin(MODELS)][kind]
        assert found["2 other models"] == pytest.approx(sorted(rest))


def test_levels_alone_and_without_intervals() -> None:
    frame = effective()[["model", "task", "levels"]]
    ax = plots.effective_levels(frame, value="levels")
    assert figure(ax).axes == [ax] and not ranges(ax)
    with pytest.raises(ValueError, match="this plot needs"):
        plots.effective_levels(frame)
    with pytest.raises(ValueError, match=r"tell at most 6 apart"):
        plots.effective_levels(effective(), models=["stage 9"])


def test_costs_stand_side_by_side_and_refuse_what_a_logarithm_cannot_show() -> None:
    frame = costs()
    left, right = plots.cost_pairs(frame).get_figure().axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["Pcc stage 1", "Pcc stage 2"]
    assert [list(line.get_xdata()) for line in left.lines] == [[3.0, 2.0], [1.0]]
    assert [list(line.get_xdata()) for line in right.lines] == [[60.0, 2.0], [90.0]]
    assert left.get_xscale() == right.get_xscale() == "log"
    with pytest.raises(ValueError, match="logarithmic axis"):
        plots.cost_pairs(frame.assign(memory=0.0))
    with pytest.raises(ValueError, match="several rows of one path"):
        plots.cost_pairs(pd.concat([frame, frame]))


def test_learning_curves_draw_a_line_a_seed_and_refuse_more_settings_than_looks() -> None:
    ax = plots.learning_curves(trainings(), label="loss")
    drawn = [np.asarray(line.get_ydata()).tolist() for line in ax.get_lines() if len(np.asarray(line.get_xdata()))]
    assert np.allclose(drawn, [[1, 2, 3], [1.1, 2.1, 3.1], [2, 3, 4], [2.1, 3.1, 4.1]])
    legend = ax.get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["s0", "s1"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss")
    with pytest.raises(ValueError, match="7 settings and 6 looks: draw them in several figures"):
        plots.learning_curves(trainings(7))


class TestPublished:
    """What a paper printed is told apart from what was measured."""

    def test_hollow_marks_for_a_series_of_a_paper(self) -> None:
        ours = ranks()
        theirs = ours[ours["model"] == "minilm"].assign(model="paper: SimCSE", low=lambda part: part["value"])
        ax = plots.rank_scores(pd.concat([ours, theirs.assign(high=theirs["value"])]), measure="kendall")
        faces = {line.get_label(): line.get_markerfacecolor() for line in ax.lines}
        assert faces["paper: SimCSE"] == "white" and faces["minilm"] != "white"

    def test_a_paper_may_have_an_average_alone(self) -> None:
        frame = scores().assign(run=lambda part: part["run"])
        average = frame.groupby("run", as_index=False)["spearman"].mean().assign(task="Avg.")
        paper = pd.DataFrame({"task": ["Avg."], "run": ["paper: keep"], "spearman": [90.61]})
        ax = plots.stage_levels(pd.concat([frame, average, paper]))
        assert "paper: keep 90.61" in words(ax)

    def test_scores_of_other_encoders_stand_as_figures_beside_ours(self) -> None:
        frame = race()
        first = str(frame["loss"].iloc[0])
        ax = plots.race_intervals(frame, published={"BERT-base": {first: 76.03}, "RoBERTa-base": {}})
        told = words(ax)
        assert {"ours", "BERT-base", "RoBERTa-base", "76.03"} <= set(told)
        assert told.count("–") == 2 * frame["loss"].nunique() - 1
        assert ax.get_xlim()[0] > 76.03  # not drawn on our axis
