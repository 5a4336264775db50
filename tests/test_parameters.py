"""Strict parameters: what is right passes, what is wrong is told with name, value, limit and mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pcclab import encoders, parameters
from pcclab.complaints import near

CEILING, STAGE2 = "01_ceiling", "03_stage2_pcc_tuning"
SETS = [(name, kind) for name in parameters.MODELS for kind in ("smoke", "real", "paper")]


@pytest.fixture
def values(checkout: Path) -> dict[str, Any]:
    smoke = parameters.load_file(STAGE2, checkout / "parameters" / STAGE2 / "smoke.yaml")
    return dict(smoke.model_dump(mode="json"))


@pytest.mark.parametrize(("notebook", "kind"), SETS)
def test_every_set_is_complete_and_valid(checkout: Path, notebook: str, kind: str) -> None:
    chosen = parameters.load_file(notebook, checkout / "parameters" / notebook / f"{kind}.yaml")
    assert chosen.source == {"smoke": "synthetic", "real": "senteval"}.get(kind, chosen.source)
    for place in chosen.stands_on():
        assert parameters.load_spoken(checkout, place)


@pytest.mark.parametrize("notebook", ["02_stage1_contrastive", STAGE2])
def test_the_paper_sets_hold_the_papers_settings(checkout: Path, notebook: str) -> None:
    chosen = parameters.load_file(notebook, checkout / "parameters" / notebook / "paper.yaml").model_dump()
    paper = {"prompt": "STH", "quantization": "nf4", "lora_rank": 64, "lora_alpha": 16.0, "lora_dropout": 0.05}
    paper |= {"learning_rate": 5e-4, "warmup_steps": 100, "batch_size": 224, "pooling": "last"}
    assert {name: chosen[name] for name in paper} == paper


BACKBONES = {
    "opt": ("facebook/opt-6.7b", 256, 216),
    "llama": ("huggyllama/llama-7b", 248, 232),
    "llama2": ("meta-llama/Llama-2-7b-hf", 248, 192),
    "mistral": ("mistralai/Mistral-7B-v0.1", 240, 224),
}


@pytest.mark.parametrize("template", ["EOL", "SUM", "STH"])
@pytest.mark.parametrize("backbone", list(BACKBONES))
def test_every_backbone_and_template_of_table_4_has_its_sets(checkout: Path, backbone: str, template: str) -> None:
    """Pcc-tuning, section 5 and table 5: a batch for each backbone; Mistral with STH has one of its own in stage 1."""
    main = (backbone, template) == ("mistral", "STH")
    kind = "paper" if main else f"paper_{backbone}_{template.lower()}"
    hub, batch, batch2 = BACKBONES[backbone]
    first, second = (parameters.load_spoken(checkout, f"{number} {kind}")[1] for number in ("02", "03"))
    assert first.model_dump()["batch_size"] == (224 if main else batch)
    assert second.model_dump()["batch_size"] == batch2
    assert second.stands_on() == (f"02 parameters/02_stage1_contrastive/{kind}.yaml",)
    for chosen, tokens, epochs in ((first, 32, 1.0), (second, 64, 10.0)):
        told = chosen.model_dump()
        assert (told["encoder"], told["prompt"]) == (hub, template)
        assert (told["max_tokens"], told["epochs"]) == (tokens, epochs)
        paper = {"quantization": "nf4", "lora_rank": 64, "lora_alpha": 16.0, "lora_dropout": 0.05, "pooling": "last"}
        paper |= {"learning_rate": 5e-4, "warmup_steps": 100, "dtype": "bfloat16", "source": "hub"}
        assert {name: told[name] for name in paper} == paper


@pytest.mark.parametrize(("notebook", "kind"), SETS)
def test_what_is_written_reads_back_to_the_same_run(checkout: Path, tmp_path: Path, notebook: str, kind: str) -> None:
    chosen = parameters.load_file(notebook, checkout / "parameters" / notebook / f"{kind}.yaml")
    (tmp_path / "again.yaml").write_text(parameters.to_yaml(chosen))
    again = parameters.load_file(notebook, tmp_path / "again.yaml")
    assert again == chosen
    assert parameters.identifier(notebook, again) == parameters.identifier(notebook, chosen)


def test_parameters_cannot_be_changed(values: dict[str, Any]) -> None:
    chosen = parameters.validate(STAGE2, values)
    with pytest.raises(ValueError, match="frozen"):
        chosen.seed = 3


def test_poolings_are_the_encoders_own() -> None:
    choices = parameters.Stage2Parameters.model_fields["pooling"].annotation.__args__  # type: ignore[union-attr]
    assert set(choices) == {"default", *encoders.POOLINGS}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"learning_rate": "1e-4"}, r"learning_rate = '1e-4': .*YAML reads 1e-4 as text: write 1\.0e-4 "),
        ({"learning_rate": "3e5"}, r"write 3\.0e\+5 "),
        ({"learning_rate": "-2E-3"}, r"write -2\.0e-3 "),
        ({"learning_rate": "fast"}, "learning_rate = 'fast': .*write a number without quotes"),
        ({"learning_rate": 2}, "learning_rate = 2: it must be less than or equal to 1"),
        ({"learning_rate": float("nan")}, "learning_rate = nan: it must be a finite number"),
        ({"batch_size": 1}, "batch_size = 1: it must be greater than or equal to 2 .*one alone"),
        ({"batch_size": 32.0}, r"batch_size = 32\.0: it must be a valid integer"),
        ({"seed": True}, "seed = True: it must be a valid integer"),
        ({"seed": -1}, "seed = -1"),
        ({"max_steps": 0}, "max_steps = 0 trains nothing: give -1"),
        ({"max_steps": 2, "warmup_steps": 2}, "warmup_steps = 2 leaves none of max_steps = 2"),
        ({"prompt": "EOL", "pooling": "mean"}, "prompt = 'EOL' .*pooling = 'mean'.*set pooling to last"),
        ({"prompt": False}, "prompt = False: .*YAML reads yes, no, on and off"),
        ({"quantization": "nf4"}, "quantization = 'nf4' .*lora_rank = 0 .*64"),
        ({"quantization": "nf"}, "quantization = 'nf': .*did you mean nf4"),
        ({"micro_tokens": 16, "max_tokens": 32}, "micro_tokens = 16 cannot hold .*max_tokens = 32.*raise"),
        ({"source": "sentevall"}, r"source = 'sentevall': .*did you mean senteval\? .*\./sentevall"),
        ({"leakage": "filtr"}, "leakage = 'filtr': .*did you mean filter"),
        ({"levels": ["keep", "keep"]}, "levels = .*names a level twice"),
        ({"levels": ["kep"]}, r"levels\[0\] = 'kep': .*did you mean keep"),
        ({"levels": "keep"}, "levels = 'keep'"),
        ({"stage1": "smoke"}, "stage1 = 'smoke': must be empty or a YAML file"),
        ({"encoder": ""}, "encoder = ''"),
        ({"leakge": "keep"}, r"unknown parameter leakge = 'keep': did you mean leakage\?"),
    ],
)
def test_bad_values_are_told(values: dict[str, Any], change: dict[str, Any], told: str) -> None:
    parameters.validate(STAGE2, values)
    with pytest.raises(ValueError, match=told):
        parameters.validate(STAGE2, {**values, **change})


@pytest.mark.parametrize("name", sorted(parameters.Stage2Parameters.model_fields))
def test_every_parameter_must_be_given(values: dict[str, Any], name: str) -> None:
    del values[name]
    with pytest.raises(ValueError, match=f"the parameter {name} is missing: add it"):
        parameters.validate(STAGE2, values)


def test_all_faults_of_a_file_come_at_once_each_with_its_line(checkout: Path, tmp_path: Path) -> None:
    text = (checkout / "parameters" / STAGE2 / "smoke.yaml").read_text()
    text = text.replace("learning_rate: 5.0e-05", "learning_rate: 5e-5").replace("batch_size:", "batch_siz:")
    (tmp_path / "mine.yaml").write_text(text)
    lines = {line.partition(":")[0]: number for number, line in enumerate(text.splitlines(), 1)}
    with pytest.raises(ValueError, match="learning_rate") as caught:
        parameters.load_file(STAGE2, tmp_path / "mine.yaml")
    told = str(caught.value).splitlines()
    assert len(told) == 3
    assert f"mine.yaml, line {lines['learning_rate']}: learning_rate = '5e-5'" in told[0]
    assert "mine.yaml: the parameter batch_size is missing" in told[1]
    assert f"mine.yaml, line {lines['batch_siz']}: unknown parameter batch_siz" in told[2]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"seed: 1\nseed: 2\n", "line 2: seed stands in line 1 already"),
        (b"- 1\n", "holds list, wanted lines"),
        (b"", "holds NoneType"),
        (b"seed: [1\n", "not YAML"),
        (b"seed: \xff\n", "byte 6 is not UTF-8"),
        (b"seed: !!python/object/apply:os.system ['true']\n", "not YAML"),
    ],
)
def test_a_file_that_is_no_set_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=told):
        parameters.load_file(STAGE2, tmp_path / "x.yaml")


def test_a_missing_file_is_told_with_what_is_there(checkout: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"smok\.yaml: its folder holds paper\.yaml, real\.yaml, smoke\.yaml"):
        parameters.load_file(CEILING, checkout / "parameters" / CEILING / "smok.yaml")


def test_an_unknown_notebook_is_told() -> None:
    with pytest.raises(ValueError, match=r"unknown notebook '01_celing': did you mean 01_ceiling\?"):
        parameters.validate("01_celing", {})


def test_the_level_that_is_chosen_is_always_trained(values: dict[str, Any]) -> None:
    chosen = parameters.validate(STAGE2, {**values, "leakage": "keep", "levels": []})
    assert isinstance(chosen, parameters.Stage2Parameters)
    assert chosen.levels == ("keep",)


def test_overrides_are_typed_by_their_parameter(checkout: Path) -> None:
    texts = ["learning_rate=1e-4", "epochs=2", "levels=keep, strict", "leakage=strict", "encoder=007", "stage1="]
    overrides = parameters.read_overrides(STAGE2, texts)
    chosen = parameters.load_file(STAGE2, checkout / "parameters" / STAGE2 / "real.yaml", overrides)
    got = chosen.model_dump(include={"learning_rate", "epochs", "levels", "leakage", "encoder", "stage1"})
    wanted = {"learning_rate": 1e-4, "epochs": 2.0, "levels": ("keep", "strict"), "leakage": "strict"}
    assert got == {**wanted, "encoder": "007", "stage1": ""}


def test_a_wrong_override_is_told_as_one(checkout: Path) -> None:
    path = checkout / "parameters" / STAGE2 / "real.yaml"
    with pytest.raises(ValueError, match=r"^-p: seed = 'three'"):
        parameters.load_file(STAGE2, path, parameters.read_overrides(STAGE2, ["seed=three"]))
    with pytest.raises(ValueError, match="write NAME=VALUE"):
        parameters.read_overrides(STAGE2, ["seed"])
    with pytest.raises(ValueError, match="given already"):
        parameters.read_overrides(STAGE2, ["seed=1", "seed=2"])


def ceiling(**change: Any) -> parameters.Parameters:
    base = {"source": "synthetic", "seed": 0, "n": 10, "share": 0.5, "levels": 5, "hardness": 3.0}
    return parameters.validate("01_ceiling", {**base, **change})


@given(seeds=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)))
def test_runs_are_the_same_exactly_when_their_parameters_are(seeds: tuple[int, int]) -> None:
    first, second = (parameters.identifier("01_ceiling", ceiling(seed=seed)) for seed in seeds)
    assert (first == second) == (seeds[0] == seeds[1])


def test_a_run_is_the_same_whether_a_number_was_written_whole_or_not() -> None:
    assert parameters.identifier("01_ceiling", ceiling(hardness=3)) == parameters.identifier("01_ceiling", ceiling())


def test_the_identifier_has_not_moved() -> None:
    # Runs on people's disks are found by it: a change here loses them.
    assert parameters.identifier("01_ceiling", ceiling()) == "39ce265ba976"
    assert parameters.identifier("01_ceiling", ceiling(), on=("a",)) != parameters.identifier("01_ceiling", ceiling())


@given(name=st.text(max_size=20))
def test_near_always_names_something_known(name: str) -> None:
    assert any(known in near(name, ["leakage", "levels", "seed"]) for known in ("leakage", "levels", "seed"))


def test_a_parameter_that_came_later_leaves_earlier_runs_where_they_were(
    checkout: Path, tmp_path: Path, values: dict[str, Any]
) -> None:
    """A run of notebook 03 had this identifier before it could be told a loss, or to compute activations again."""
    values = {**values, "levels": ["strict", "filter", "keep"]}
    before = {name: value for name, value in values.items() if name not in ("loss", "recompute")}
    (tmp_path / "parameters.yaml").write_text(yaml.safe_dump(before))
    recorded = parameters.load_recorded(STAGE2, tmp_path / "parameters.yaml")
    assert recorded == parameters.validate(STAGE2, values)
    now = parameters.identifier(STAGE2, recorded, on=("aaaff18b04e8",))
    assert now == "4fcda9259cc4"
    other = parameters.validate(STAGE2, {**values, "loss": "cosent"})
    assert parameters.identifier(STAGE2, other, on=("aaaff18b04e8",)) != now
    with pytest.raises(ValueError, match="the parameter loss is missing"):
        parameters.load_file(STAGE2, tmp_path / "parameters.yaml")


def test_the_nearest_set_and_what_differs_from_it(checkout: Path, values: dict[str, Any]) -> None:
    mine = parameters.validate(STAGE2, {**values, "seed": 3, "levels": ["keep"], "leakage": "keep"})
    assert parameters.nearest_set(checkout, STAGE2, mine) == ("smoke", ["seed=3", "leakage=keep", "levels=keep"])
    again = parameters.load_spoken(checkout, "03 smoke seed=3 leakage=keep levels=keep")[1]
    assert again == mine
