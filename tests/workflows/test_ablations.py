"""Every section runs in smoke size, has its columns, and is read from its CSV the second time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pcclab import losses
from pcclab.encoders.heads import PARTS
from pcclab.encoders.prompts import TEMPLATES
from pcclab.workflows import METHODS, SECTIONS, ablate, ablations, bench

# Rows of one seed, and the columns that say what varies.
EXPECTED: dict[str, tuple[int, set[str]]] = {
    "prompts": (4, {"backbone", "prompt"}),
    "batch size": (2, {"batch_size"}),
    "slope and threshold": (27, {"objective", "k", "x0"}),
    "concatenation": (3, {"features"}),
    "terms": (11, {"method"}),
    "teachers": (2, {"teacher", "objective"}),
    "temperatures": (12, {"objective", "tau2", "tau3"}),
}


@pytest.fixture
def p(begin: Any) -> Any:
    """Smoke size with the tiny encoder."""
    small = {"backbones": ["tiny"], "sentences": 60, "seeds": [0, 1], "ablations": list(SECTIONS), "student_layers": 1}
    return begin("04_ablations", **small).parameters


def test_every_section_a_parameter_can_name_is_there(p: Any) -> None:
    assert set(SECTIONS) == set(EXPECTED) == set(p.ablations)
    assert {section: set(labels) for section, labels in ablations.LABELS.items()} == {
        section: columns for section, (_, columns) in EXPECTED.items()
    }


def test_a_result_holds_every_setting_with_its_spread() -> None:
    frame = pd.DataFrame(
        {"objective": ["listnet", "listnet", "listmle"], "tau2": [0.05, 0.05, 0.05], "tau3": [0.025, 0.025, None],
         "average": [70.0, 71.0, 69.0], "head average": [60.0, 62.0, 61.0]}
    )  # fmt: skip
    told = ablations.by_setting("temperatures", frame)
    assert list(told) == ["listnet / 0.05 / 0.025", "listmle / 0.05"]
    assert told["listnet / 0.05 / 0.025"] == pytest.approx(
        {"mean": 70.5, "deviation": 0.5**0.5, "seeds": 2, "head": 61}
    )
    assert "deviation" not in told["listmle / 0.05"]  # one seed has none


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_gives_its_columns_and_is_read_the_second_time(
    section: str, p: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    count, columns = EXPECTED[section]
    if count > 12:
        p = p.model_copy(update={"seeds": (0,)})  # as many trainings as they are
    seeds = len(p.seeds)
    shared: dict[Any, Any] = {}
    frame = ablate(section, p, tmp_path, shared)
    assert len(frame) == seeds * count
    assert columns | {"loss", "seed", "dev", "average", "learning_rate"} <= set(frame)
    assert frame["seed"].value_counts().to_dict() == dict.fromkeys(p.seeds, count)
    assert set(frame["learning_rate"]) == {p.ablation_rate}
    assert not frame.duplicated([*columns, "seed"]).any()
    assert frame[["dev", "average"]].notna().all(axis=None)
    file = tmp_path / f"{section.replace(' ', '_')}.csv"
    assert len(pd.read_csv(file)) == seeds * count
    low, high = frame["average"].min(), frame["average"].max()
    assert f"{section}: {seeds * count} trainings, averages {low:.2f} to {high:.2f}" in capsys.readouterr().out
    monkeypatch.setattr(bench.training, "fit_frozen", None)
    told = ["average", "dev", "seed", *sorted(columns)]
    again = ablate(section, p, tmp_path, {})
    pd.testing.assert_frame_equal(again[told], frame[told], check_dtype=False)


@pytest.mark.parametrize("section", SECTIONS)
def test_what_varies_is_what_is_trained(section: str, p: Any, tmp_path: Path) -> None:
    settings = bench.FitSettings.of(p)
    planned = SECTIONS[section](p, settings, tmp_path, {})
    for at, trial, labels in planned:
        terms = {term.name: term for term in losses.parse(trial.loss)}
        at.check(trial)
        if section == "prompts":
            assert labels["prompt"] in ("none", *TEMPLATES)
            with_it = "" if labels["prompt"] == "none" else f" with {labels['prompt']}"
            assert str(at.remembered).endswith(f"cpu){with_it}")
        elif section == "batch size":
            assert trial.settings.batch_size == labels["batch_size"]
        elif section == "slope and threshold":
            assert terms[labels["objective"]].options == {"slope": labels["k"], "threshold": labels["x0"]}
        elif section == "concatenation":
            assert trial.features == labels["features"] in PARTS
        elif section == "terms":
            assert len(terms) == len(METHODS[labels["method"]])
        elif section == "teachers":
            assert labels["objective"] in terms
            assert at.teachers is not None
            assert len(at.teachers.mix) == labels["teacher"].count("+") + 1
        else:
            two, three = labels["tau2"], labels.get("tau3")
            wanted = {"temperature": two} if three is None else {
                "student_temperature": two, "teacher_temperature": three
            }  # fmt: skip
            assert terms[labels["objective"]].options == wanted
    keys = {at.key(trial) for at, trial, _ in planned}
    assert len(keys) == len(planned) == EXPECTED[section][0]


def test_two_backbones_are_also_two_teachers(p: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, seeds = ablations.encoders.load, {"one": 1, "two": 2}
    monkeypatch.setattr(
        ablations.encoders,
        "load",
        lambda name, **options: made("tiny", **{**options, **({"seed": seeds[name]} if name in seeds else {})}),
    )
    both = p.model_copy(update={"backbones": ("one", "two")})
    planned = SECTIONS["teachers"](both, bench.FitSettings.of(p), tmp_path, {})
    assert [labels["teacher"] for _, _, labels in planned] == ["one", "one", "two", "two", "one + two", "one + two"]
    assert len({at.teachers.fingerprint for at, _, _ in planned if at.teachers is not None}) == 3


def test_a_section_whose_every_training_broke_says_why(p: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise ValueError("the loss is nan: lower the learning rate")

    monkeypatch.setattr(bench.training, "fit_frozen", broken)
    with pytest.raises(ValueError, match="batch size: every training broke: the loss is nan"):
        ablate("batch size", p, tmp_path, {})
