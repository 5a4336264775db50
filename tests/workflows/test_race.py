"""Each loss with a learning rate of its own, chosen by the development pairs; the tests for the chosen ones only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pcclab import losses, training
from pcclab.encoders.heads import SiameseHead
from pcclab.parameters import validate
from pcclab.training import FitSettings
from pcclab.workflows import PAIR_LOSSES, Trial, bench, race, race_of, standing

RATES = [1e-3, 2e-2]


@pytest.fixture
def run(make: Any, settings: FitSettings) -> Any:
    """Race on the small data."""

    def raced(names: Any, *, seeds: Any = (0, 1), rates: Any = RATES, **other: Any) -> pd.DataFrame:
        return race(make(**other), names, settings=settings, learning_rates=rates, seeds=seeds)

    return raced


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let trainings diverge."""

    def broken(when: Any) -> None:
        fit_frozen = bench.training.fit_frozen

        def fit(encoder: Any, table: Any, loss: str, *, parameters: FitSettings, **options: Any) -> Any:
            if when(loss, parameters):
                raise ValueError("the loss is nan: lower the learning rate")
            return fit_frozen(encoder, table, loss, parameters=parameters, **options)

        monkeypatch.setattr(bench.training, "fit_frozen", fit)

    return broken


def test_the_best_rate_by_dev_is_trained_on_every_seed_and_only_it_sees_the_tests(
    run: Any, make: Any, trained: list[Any], capsys: Any
) -> None:
    rows = run(["pearson", "smooth_k2"])
    assert len(rows) == 2 * (1 + 2)
    for name in ("pearson", "smooth_k2"):
        part = rows[rows["loss"] == name]
        tried = part[part["seed"] == 0].set_index("learning_rate")["dev"]
        chosen = part[part["chosen"]]
        assert set(chosen["learning_rate"]) == {tried.idxmax()}
        assert chosen["seed"].tolist() == [0, 1]
        assert chosen[["stsb", "sickr", "average"]].notna().all(axis=None)
        assert part[~part["chosen"]][["stsb", "sickr", "average"]].isna().all(axis=None)
    kept = pd.DataFrame.from_dict(make().rows(), orient="index")
    assert len(kept) == 6
    assert kept["average"].notna().sum() == 4
    assert {(loss, rate, seed) for loss, rate, seed in trained} == set(
        zip(rows["loss"], rows["learning_rate"], rows["seed"], strict=True)
    )
    lines = capsys.readouterr().out.splitlines()
    mean = rows[rows["chosen"] & (rows["loss"] == "pearson")]["average"].mean()
    rate = rows[rows["chosen"] & (rows["loss"] == "pearson")]["learning_rate"].iloc[0]
    assert lines[0] == f"1 of 2: pearson: lr {rate:g}, tests {mean:.2f}"


def test_a_second_race_trains_nothing_and_a_larger_one_only_what_is_new(run: Any, trained: list[Any]) -> None:
    first = run(["pearson", "cosent"])
    trained.clear()
    assert run(["pearson", "cosent"]).equals(first)
    assert trained == []
    run(["pearson", "cosent", "ccc"], seeds=(0, 1, 2))
    best = first[first["chosen"]].groupby("loss")["learning_rate"].first()
    old = [(loss, rate, seed) for loss, rate, seed in trained if loss != "ccc"]
    assert old == [("pearson", best["pearson"], 2), ("cosent", best["cosent"], 2)]


def test_a_race_that_was_stopped_goes_on(run: Any, trained: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    fit_frozen = bench.training.fit_frozen

    def stopped(*args: Any, **options: Any) -> Any:
        if len(trained) == 4:
            raise KeyboardInterrupt
        return fit_frozen(*args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(bench.training, "fit_frozen", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(["pearson", "cosent"])
    before = list(trained)
    trained.clear()
    assert run(["pearson", "cosent"])["loss"].tolist() == ["pearson"] * 3 + ["cosent"] * 3
    assert {loss for loss, _, _ in before} == {"pearson"}
    assert {loss for loss, _, _ in trained} == {"cosent"}


def test_a_rate_that_diverges_is_a_row_with_an_error_and_never_chosen(run: Any, breaking: Any) -> None:
    breaking(lambda loss, settings: settings.learning_rate == RATES[1])
    rows = run(["pearson"])
    (broken,) = rows[~rows["chosen"]].to_dict("records")
    assert (broken["learning_rate"], broken["error"]) == (RATES[1], "the loss is nan: lower the learning rate")
    assert set(rows[rows["chosen"]]["learning_rate"]) == {RATES[0]}


def test_a_loss_that_breaks_with_every_rate_is_told_and_the_race_goes_on(run: Any, breaking: Any, capsys: Any) -> None:
    breaking(lambda loss, settings: loss == "pearson")
    rows = run(["pearson", "ccc"])
    broken = rows[rows["loss"] == "pearson"]
    assert broken["error"].notna().all()
    assert not broken["chosen"].any()
    assert "1 of 2: pearson: broke with every learning rate" in capsys.readouterr().out
    assert standing(rows).index.tolist() == ["ccc"]
    breaking(lambda loss, settings: True)
    with pytest.raises(ValueError, match="no loss was trained to its end: the loss is nan"):
        standing(run(["pearson"]))


def test_a_seed_that_diverges_does_not_count_and_the_race_goes_on(run: Any, breaking: Any, capsys: Any) -> None:
    breaking(lambda loss, settings: loss == "pearson" and settings.seed == 1)
    rows = run(["pearson", "ccc"], seeds=(0, 1, 2))
    (broken,) = rows[rows["error"].notna()].to_dict("records")
    assert (broken["seed"], broken["chosen"]) == (1, False)
    assert standing(rows)["seeds"].to_dict() == {"pearson": 2, "ccc": 3}
    assert "1 of 3 seeds broke" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:An input array is constant")
def test_a_loss_that_really_diverges_is_no_end_of_the_race(run: Any, settings: FitSettings) -> None:
    rows = run(["cosine_mse", "pearson"], rates=[1e-3, 1e30], seeds=(0,))
    assert rows[rows["chosen"]]["learning_rate"].tolist() == [1e-3, 1e-3]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pearsn", "unknown loss 'pearsn': did you mean"),
        ("pearson + 0.1 * info_nc", "did you mean info_nce"),
        ("listnet", "listnet takes"),
        ("smooth_k2(slop=1)", "smooth_k2 has no option 'slop'"),
    ],
)
def test_a_loss_that_cannot_race_is_told_before_any_is_trained(
    run: Any, trained: list[Any], name: str, told: str
) -> None:
    with pytest.raises(ValueError, match="did you mean|takes|has no option") as refused:
        run(["pearson", name])
    assert told in str(refused.value)
    assert trained == []


@pytest.mark.parametrize("empty", ["seeds", "rates"])
def test_a_race_without_seeds_or_rates_is_refused(run: Any, trained: list[Any], empty: str) -> None:
    with pytest.raises(ValueError, match="give at least one of each"):
        run(["pearson"], **{empty: []})
    assert trained == []


def test_the_table_has_means_and_students_interval_best_first() -> None:
    scores = {"a": [70.0, 71.0, 73.0], "b": [80.0, 80.5, 79.0], "c": [75.0]}
    rows = pd.DataFrame(
        [
            {"loss": name, "learning_rate": 0.1, "seed": seed, "chosen": True, "dev": score + 1, "average": score}
            for name, several in scores.items()
            for seed, score in enumerate(several)
        ]
        + [{"loss": "a", "learning_rate": 0.2, "seed": 0, "chosen": False, "dev": 1.0}]
    ).assign(seconds=2.0)
    table = standing(rows)
    assert table.index.tolist() == ["b", "c", "a"]
    assert table["seeds"].to_dict() == {"a": 3, "b": 3, "c": 1}
    assert (table["learning_rate"] == 0.1).all()
    for name in ("a", "b"):
        low, high = stats.t.interval(0.95, 2, loc=np.mean(scores[name]), scale=stats.sem(scores[name]))
        assert table.loc[name, ["low", "high"]].tolist() == pytest.approx([low, high])
        assert table.loc[name, "average"] == pytest.approx(np.mean(scores[name]))
        assert table.loc[name, "dev"] == pytest.approx(np.mean(scores[name]) + 1)
    assert table.loc["c", ["low", "high"]].isna().all()


def test_every_loss_that_rated_pairs_can_train_is_in_the_list(make: Any) -> None:
    table = make().table
    heads = [None, SiameseHead(8), SiameseHead(8, levels=range(6))]
    fits = set()
    for name in losses.CATALOGUE:
        for head in heads:
            try:
                training.bind(table, name, head=head)
            except ValueError:
                continue
            fits.add(name)
    listed = {term.name for name in PAIR_LOSSES for term in losses.parse(name)}
    assert listed == fits
    assert {"ranking_consistency", "listnet", "listmle"} == set(losses.CATALOGUE) - fits


@pytest.mark.parametrize("name", PAIR_LOSSES)
def test_every_pair_loss_trains_in_the_race(make: Any, settings: FitSettings, name: str) -> None:
    row = make().measure(Trial(name, replace(settings, max_steps=4)))
    assert "error" not in row
    assert np.isfinite(row["average"])


def test_a_race_of_parameters_shares_its_embeddings_and_its_file(checkout: Any, tmp_path: Any, own_root: Any) -> None:
    import yaml

    smoke = yaml.safe_load((checkout / "parameters/04_ablations/smoke.yaml").read_text())
    change = {"encoder": "tiny", "losses": ["pearson", "l1"], "seeds": [0], "max_steps": 2, "evaluate_every": 1}
    shared: dict[Any, Any] = {}
    rows = race_of(validate("04_ablations", {**smoke, **change}), tmp_path, shared)
    assert rows["loss"].tolist() == ["pearson", "pearson", "l1", "l1"]
    assert (tmp_path / "race.csv").is_file()
    embedded = shared["encoder"]
    race_of(validate("04_ablations", {**smoke, **change, "losses": ["l1", "ccc"]}), tmp_path, shared)
    assert shared["encoder"] is embedded
    assert len(pd.read_csv(tmp_path / "race.csv")) == 6


def test_a_full_race_keeps_no_weights(checkout: Any, tmp_path: Any) -> None:
    import yaml

    smoke = yaml.safe_load((checkout / "parameters/04_ablations/smoke.yaml").read_text())
    change = {"encoder": "tiny", "form": "full", "losses": ["pearson", "ccc"], "max_tokens": 128, "batch_size": 16}
    p = validate("04_ablations", {**smoke, **change, "max_steps": 2, "evaluate_every": 1, "seeds": [0]})
    rows = race_of(p, tmp_path, {})
    assert rows["chosen"].sum() == 2
    assert set(rows["form"]) == {"full"}
    assert not list((tmp_path / "trials").iterdir())
    assert race_of(p, tmp_path, {}).equals(rows)
