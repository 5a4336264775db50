"""Sentences typed in, and the leaks of a test set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from pcclab import plots
from pcclab.plots import explorations
from pcclab.widgets.controls import choices
from pcclab.widgets.exploring import captioned

if TYPE_CHECKING:
    from pcclab.evaluation.sts import Encodes

TESTS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")


def pair_cosines(encoders: Mapping[str, Encodes], first: str, second: str) -> dict[str, float]:
    """The cosine of two sentences under each encoder.

    Args:
        encoders: by name.
        first: a sentence.
        second: another.

    Raises: ValueError for a sentence without a word.
    """
    from pcclab import evaluation

    for name, text in (("first", first), ("second", second)):
        if not text.strip():
            raise ValueError(f"{name} is empty: type a sentence")
    vectors = {name: encoder.encode([first, second]) for name, encoder in encoders.items()}
    return {name: float(evaluation.cosine(both[:1], both[1:])[0]) for name, both in vectors.items()}


def sentences(*, first: str, second: str, encoders: Mapping[str, Any], cosines: pd.DataFrame) -> Figure:
    """Where two sentences lie among the rated pairs of a development set, under several encoders.

    Args:
        first, second: any text.
        encoders: by name.
        cosines: columns model (names of `encoders`), group (of ratings) and similarity, as
            `evaluation.similarity_by_group` gives them.
    """
    found = pair_cosines(encoders, first, second)
    shown = cosines[cosines["model"].isin(list(found))]
    parts = []
    for name, cosine in found.items():
        medians = shown[shown["model"] == name].groupby("group", observed=True)["similarity"].median()
        nearest = (medians - cosine).abs().idxmin()
        parts.append(f"{name}: cosine {cosine:.3f}, nearest to the median of pairs rated {nearest}")
    return captioned(plots.cosine_groups(shown, marks=found), "; ".join(parts))


def leaks(source: str) -> pd.DataFrame:
    """How much of each test stands in what is trained or selected on, a row a set, test and level.

    Args:
        source: as `data.load` takes it.

    Returns: columns train, test, pairs (of the test), level ("pair", "sentence") and percent.
    Relations: its first four sets at one level are `data.leakage.matrix`; the others are those of stage 2.
    """
    from pcclab import data

    tests = data.sts_tests(source=source)
    stage2 = {f"stage 2, {level}": data.stage2_pairs(leakage=level, source=source)
              for level in ("keep", "filter", "strict")}  # fmt: skip
    stage2["stage 2, dev"] = data.dev_pairs(source=source)
    frames = []
    for level in ("pair", "sentence"):
        sets = pd.concat([data.leakage.matrix(source=source, level=level), data.leakage.shares(stage2, tests, level=level)])  # fmt: skip  # noqa: E501
        long = sets.rename_axis("train").reset_index().melt("train", var_name="test", value_name="percent")
        frames.append(long.assign(level=level, pairs=long["test"].map({name: len(table) for name, table in tests.items()})))  # fmt: skip  # noqa: E501
    return pd.concat(frames, ignore_index=True)


def ledger(*, test: Annotated[str, choices(TESTS, "the test set")], shares: pd.DataFrame) -> Figure:
    """What of one test stands in each training and development set: whole pairs, and pairs that share a sentence.

    Args:
        test: one of the seven.
        shares: of `leaks`.

    Raises: ValueError for a test that `shares` does not hold.
    """
    rows = shares[shares["test"] == test]
    if rows.empty:
        raise ValueError(f"test is {test!r}: choose one of {', '.join(shares['test'].unique())}")
    told = rows.set_index(["level", "train"])["percent"]
    held = {name: f"{told[name]:.1f} %" for name in told.index}
    said = (
        f"{test}, {rows['pairs'].iloc[0]:,} pairs: stage 2 on all its pairs holds {held['pair', 'stage 2, keep']}; "
        f"filtered {held['pair', 'stage 2, filter']}, and a sentence of {held['sentence', 'stage 2, filter']}; "
        f"strictly filtered a sentence of {held['sentence', 'stage 2, strict']}"
    )
    return captioned(explorations.seen_shares(rows), said)
