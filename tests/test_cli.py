"""The command: help a person can follow, one clean sentence for bad input, exit codes that scripts can trust."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
import yaml

from pcclab import batch, cli, doctor, encoders, evaluation, quickstart, report, runs, sheet
from pcclab.parameters import MODELS, notebook_named
from pcclab.workflows import bench

CEILING: dict[str, Any] = {"source": "synthetic", "seed": 0, "n": 10, "share": 0.5, "levels": 5, "hardness": 3.0}
COMMANDS = sorted(command.name or command.callback.__name__ for command in cli.app.registered_commands)
COMMANDS += ["data"]
Called = tuple[int, str, str]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command in this process: exit code, output, errors."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # `main` words them its own way
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: str) -> Called:
        monkeypatch.setattr(sys, "argv", ["pcclab", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        told = capsys.readouterr()
        code = stopped.value.code
        return (code if isinstance(code, int) else int(bool(code))), told.out, told.err

    yield run
    signal.signal(signal.SIGTERM, before)


def test_help_comes_within_a_second_and_names_every_command(checkout: Path) -> None:
    seconds, command = [], [sys.executable, "-m", "pcclab", "--help"]
    for _ in range(3):
        began = time.perf_counter()
        told = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True).stdout
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 1
    for name in COMMANDS:
        assert f" {name} " in told


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(call: Any, name: str) -> None:
    code, out, _ = call(name, "--help")
    assert code == 0
    assert f"pcclab {name}" in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "99"], "notebook '99' names 0 notebooks"),
        (["run", "0"], f"notebook '0' names {sum(name.startswith('0') for name in MODELS)} notebooks"),
        (["run", ""], "notebook '' names 0 notebooks"),
        (["run", "03", "--set", "nowhere.yaml"], "no parameter file nowhere.yaml"),
        (["run", "03", "-p", "leakge=keep"], "-p: unknown parameter leakge = 'keep': did you mean leakage?"),
        (["run", "03", "-p", "batch_size=1"], "-p: batch_size = 1: it must be greater than or equal to 2"),
        (["run", "03", "-p", "seed"], "write NAME=VALUE"),
        (["race", "--set", "nowhere.yaml"], "no parameter file nowhere.yaml"),
        (["race", "pearson", "-p", "form=ful"], "-p: form = 'ful'"),
        (["race", "-p", "losses"], "write NAME=VALUE"),
        (["sweep", "losse", "--dry-run"], "losses.yaml"),
        (["sweep", "losses", "--slots", "0"], "--slots 0: give at least 1"),
        (["sweep", "losses", "--slurm-option", "time=5"], "--slurm-option goes with --slurm"),
        (["sweep", "losses", "--slurm", "--slurm-option", "partiton=gpu"], "--slurm"),
        (["status", "99"], "notebook '99' names 0 notebooks"),
        (["evaluate", "tiny", "--tasks", "sts1", "--source", "synthetic"], "unknown task 'sts1'"),
        (["evaluate", "tiny", "--tasks", "", "--source", "synthetic"], "no tasks"),
        (["evaluate", "tiny", "--all", "--tasks", "stsb"], "--tasks and --subsets do not go with --all"),
        (["evaluate", "tiny", "--all", "--subsets"], "--tasks and --subsets do not go with --all"),
        (["evaluate", "tiny", "--again"], "--again goes with --all"),
        (["evaluate", "tiny", "--all"], "PCCLAB_DATA"),
        (["evaluate", "tiny"], "PCCLAB_DATA"),
        (["evaluate", "tiny", "--source", "./nowhere"], "no folder"),
        (["data", "show", "stsx", "--source", "synthetic"], "unknown corpus 'stsx'"),
        (["data", "show", "stsb", "--rows", "0", "--source", "synthetic"], "at least 1"),
        (["nonsense"], "No such command"),
        (["run", "03", "--sett", "smoke"], "No such option"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(call: Any, arguments: list[str], told: str) -> None:
    code, _, err = call(*arguments)
    assert code == 2
    assert told in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err


def test_debug_shows_the_error_itself(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PCCLAB_DEBUG", "")  # so that what the option sets is undone
    monkeypatch.setattr(sys, "argv", ["pcclab", "--debug", "run", "99"])
    with pytest.raises(ValueError, match="names 0 notebooks"):
        cli.main()


@pytest.mark.parametrize(
    "given", ["03", "03_stage2", "03_stage2_pcc_tuning", "notebooks/03_stage2_pcc_tuning.ipynb", "./notebooks/03"]
)
def test_a_notebook_is_named_by_its_beginning(given: str) -> None:
    assert notebook_named(given, MODELS) == "03_stage2_pcc_tuning"


def finishing(run: runs.Run, **options: Any) -> None:
    """Stands for a notebook that runs to its end."""
    if options.get("again"):
        sheet.set_aside(run.folder)
    run.begin()
    run.finish({"sts": {"before": {"stsb": 82.034}}, "seed": run.parameters.seed})


def test_run_checks_runs_and_reuses(call: Any, monkeypatch: pytest.MonkeyPatch, own_root: Path) -> None:
    monkeypatch.setattr(batch, "execute", finishing)
    code, out, _ = call("run", "01", "--set", "smoke", "-p", "seed=3")
    assert code == 0
    assert "82.03" in out
    assert "seed: 3" in out
    (folder,) = (own_root / "runs" / "01_ceiling").glob("*/")
    assert folder.name in out

    monkeypatch.setattr(batch, "execute", None)  # a second call must not run anything
    code, out, _ = call("run", "01", "-p", "seed=3")
    assert code == 0
    assert "finished already" in out
    assert "82.03" in out

    monkeypatch.setattr(batch, "execute", finishing)
    assert call("run", "01", "-p", "seed=3", "--again")[0] == 0
    assert (folder.with_name(f"{folder.name}.previous") / "result.json").is_file()


def test_a_failed_notebook_is_exit_code_one(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(run: runs.Run, **options: Any) -> None:
        raise batch.RunFailed("notebook 01_ceiling failed: ValueError: x")

    monkeypatch.setattr(batch, "execute", failing)
    code, _, err = call("run", "01")
    assert code == 1
    assert "notebook 01_ceiling failed: ValueError: x" in err


def test_stopped_by_hand_is_exit_code_130(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(run: runs.Run, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

    monkeypatch.setattr(batch, "execute", stopped)
    assert call("run", "01")[0] == 130


def test_an_interrupt_ends_notebook_and_kernel_and_leaves_an_interrupted_run(own_root: Path, checkout: Path) -> None:
    (own_root / "notebooks").unlink()
    (own_root / "notebooks").mkdir()
    given = "\n".join(f"{name} = {value!r}" for name, value in CEILING.items())
    cells = ["import os, pcclab\nrun = pcclab.start('01_ceiling', globals())", "print('kernel', os.getpid())"]
    cells.append("import time\ntime.sleep(300)")
    made = [nbformat.v4.new_code_cell(given, metadata={"tags": ["parameters"]})]
    made += [nbformat.v4.new_code_cell(cell) for cell in cells]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(
        nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": spec}), own_root / "notebooks/01_ceiling.ipynb"
    )
    command = [sys.executable, "-m", "pcclab", "run", "01"]

    def hears() -> None:
        # A suite started in the background of a shell inherits an ignored SIGINT, and passes it on.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(command, cwd=checkout, stdout=subprocess.PIPE, text=True, preexec_fn=hears) as process:
        assert process.stdout is not None
        kernel = next(int(line.split()[1]) for line in process.stdout if line.startswith("kernel"))
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(kernel, 0)
    smoke = runs.load_file("01_ceiling", checkout / "parameters" / "01_ceiling" / "smoke.yaml")
    assert runs.locate("01_ceiling", smoke).state == "interrupted"


def test_quickstart_runs_the_three_and_names_the_ceilings(
    call: Any, monkeypatch: pytest.MonkeyPatch, own_root: Path
) -> None:
    monkeypatch.setattr(batch, "execute", finishing)
    code, out, _ = call("quickstart")
    assert code == 0
    for name in quickstart.NOTEBOOKS:
        assert name in out
    assert "87.50" in out
    assert "86.60" in out
    assert "PCCLAB_DATA=" in out
    assert "finished before, reused" in call("quickstart")[1]


@pytest.fixture
def tiny(checkout: Path, tmp_path: Path) -> Any:
    """The smoke race of a tiny encoder, as a parameter file."""

    def written(seeds: list[int]) -> list[str]:
        smoke = runs.load_file("04_ablations", checkout / "parameters" / "04_ablations" / "smoke.yaml")
        few = {"encoder": "tiny", "seeds": seeds, "max_steps": 2, "evaluate_every": 1}
        path = tmp_path / "tiny.yaml"
        path.write_text(yaml.safe_dump({**smoke.model_dump(mode="json"), **few}))
        return ["--set", str(path)]

    return written


def test_race_prints_its_table_and_keeps_rows_and_figure(
    call: Any, own_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Any
) -> None:
    code, out, err = call("race", "pearson", "smooth_k2", *tiny([0]))
    assert code == 0, err  # which holds the progress of a machine that is busy
    table = [line.split() for line in out.splitlines()]
    (head,) = (line for line in table if line[:1] == ["synthetic"])
    assert head == ["synthetic", "learning_rate", "seeds", "dev", "average", "seconds"]  # one seed has no interval
    scores = {line[0]: float(line[4]) for line in table if line[:1] in (["pearson"], ["smooth_k2"])}
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert "1 of 2: pearson: lr" in out
    folder = own_root / "runs" / "04_ablations"
    assert str(folder / "race.csv") in out
    assert str(folder / "race_frozen.png") in out
    for suffix in ("pdf", "png", "json"):
        assert (folder / f"race_frozen.{suffix}").is_file()
    rows = pd.read_csv(folder / "race.csv")
    assert len(rows) == 4
    # A second call trains nothing, nor does one that names the file from its own folder.
    monkeypatch.setattr(bench.training, "fit_frozen", None)
    assert call("race", "pearson", "smooth_k2", *tiny([0]))[0] == 0
    monkeypatch.chdir(tmp_path)
    assert call("race", "pearson", "smooth_k2", "--set", "tiny.yaml")[0] == 0
    assert pd.read_csv(folder / "race.csv").equals(rows)


def test_race_over_seeds_has_an_interval(call: Any, tiny: Any) -> None:
    code, out, _ = call("race", "pearson", "ccc", *tiny([0, 1, 2]))
    assert code == 0
    (head,) = (line.split() for line in out.splitlines() if line.startswith("synthetic"))
    assert head[-2:] == ["low", "high"]


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        ("pearsn", "unknown loss 'pearsn': did you mean pearson"),
        ("pearson + 0.1 * info_nc", "did you mean info_nce"),
        ("listnet", "listnet takes (student, teacher), which ScoredPairs does not hold"),
        ("pearson +", "pearson +"),
    ],
)
def test_race_tells_a_loss_it_cannot_train_before_it_trains_any(
    call: Any, own_root: Path, tiny: Any, loss: str, told: str
) -> None:
    code, out, err = call("race", "pearson", loss, *tiny([0]))
    assert code == 2
    assert told in " ".join(err.split())
    assert "Traceback" not in err
    assert out == ""
    assert not (own_root / "runs" / "04_ablations" / "race.csv").exists()


def test_evaluate_prints_tasks_averages_source_and_encoder(call: Any) -> None:
    with pytest.warns(UserWarning, match="were cut; raise max_tokens"):
        code, out, _ = call("evaluate", "tiny", "--source", "synthetic", "--tasks", "stsb,sickr", "--max-tokens", "16")
    assert code == 0
    for told in ("tiny", "synthetic data", "stsb", "sickr", "average"):
        assert told in out
    assert "sts12" not in out
    code, out, _ = call("evaluate", "tiny", "--source", "synthetic", "--tasks", "sts13", "--subsets")
    assert code == 0
    assert "wmean" in out
    assert "sts13/" in out


def test_evaluate_everything_is_kept_and_read_again(call: Any, own_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = call("evaluate", "tiny", "--all", "--source", "synthetic")
    assert code == 0, err  # which holds the progress of a machine that is busy
    for told in ("synthetic data", "[1/10] sts: computing", "[10/10] geometry: done", "transfer", "without order"):
        assert told in out
    table = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith(("stsb", "mrpc", "uniform"))}
    assert table["stsb"][1] == "16" and table["stsb"][3].startswith("[")  # the last table with that row: lists
    sheet = json.loads(next((own_root / "runs" / "evaluations").glob("*/all-synthetic.json")).read_text("utf8"))
    assert len(sheet["seconds"]) == 10 and all(seconds > 0 for seconds in sheet["seconds"].values())

    monkeypatch.setattr(encoders.Encoder, "encode", None)  # a second call embeds nothing
    code, again, _ = call("evaluate", "tiny", "--all", "--source", "synthetic")
    assert code == 0
    assert "10 of 10 units were kept from before" in again
    assert [line for line in again.splitlines() if "[" not in line[:1]][:-3] == [
        line for line in out.splitlines() if "[" not in line[:1]
    ][:-3]


def test_evaluate_takes_a_run_as_it_is_spoken_of(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def leaving_weights(run: runs.Run, **options: Any) -> None:
        run.begin()
        encoders.load("tiny", seed=5).save(run.checkpoints / "final")
        run.finish({"tests": {"average": 1.0}})

    monkeypatch.setattr(batch, "execute", leaving_weights)
    code, out, _ = call("evaluate", "03 smoke leakage=keep", "--source", "synthetic", "--tasks", "stsb")
    assert code == 0
    figure = evaluation.sts(encoders.load("tiny", seed=5), tasks=["stsb"], source="synthetic").average
    assert f"{figure:.2f}" in out


def test_export_writes_a_folder_and_leaves_others_alone(call: Any, tmp_path: Path) -> None:
    code, out, _ = call("export", "tiny", str(tmp_path / "out"))
    assert code == 0
    assert "SentenceTransformer(" in out
    assert "# out" in (tmp_path / "out" / "README.md").read_text(encoding="utf8")
    assert call("export", "tiny", str(tmp_path / "out"))[0] == 0  # an earlier export is replaced
    (tmp_path / "mine").mkdir()
    code, _, err = call("export", "tiny", str(tmp_path / "mine"))
    assert code == 2
    assert "is no exported model" in " ".join(err.split())


@pytest.mark.real_data
@pytest.mark.slow
def test_evaluate_gives_the_published_scores(call: Any, senteval: Path) -> None:
    code, out, _ = call("evaluate", "minilm", "--source", str(senteval))
    assert code == 0
    figures = [float(word) for word in out.splitlines()[-1].split()]
    assert figures[:8] == pytest.approx([72.37, 80.60, 75.59, 85.39, 78.99, 82.03, 77.15, 78.87], abs=0.02)


def test_data_shows_and_checks(call: Any) -> None:
    code, out, _ = call("data", "show", "stsb", "--source", "synthetic", "--rows", "2")
    assert code == 0
    assert "synthetic data" in out
    assert "gold" in out
    code, out, _ = call("data", "check", "--source", "synthetic")
    assert code == 0
    assert "sickr" in out


def test_doctor_tells_and_never_fails(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise OSError("no driver\nsecond line")

    monkeypatch.setattr(doctor, "_gpu", broken)
    code, out, _ = call("doctor")
    assert code == 0
    lines = out.splitlines()
    for title in ("python", "torch", "bitsandbytes", "kernels", "jupyterlab", "encoder", "checkout"):
        assert any(line.startswith(f"{title:<12} ok          ") for line in lines), title
    assert "gpu          not usable  OSError: no driver" in lines
    data = lines.index("data         missing     PCCLAB_DATA is not set: synthetic data only")
    assert lines[data + 1].strip() == "mend: ./lab data fetch FOLDER, then export PCCLAB_DATA=FOLDER"
    assert lines[-1] == "9 ok, 1 missing, 2 not usable"  # data; the GPU, and the hub, which the tests switch off


def test_kernels_installs_lists_and_removes(call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(doctor, "gpus", lambda: {"0": "card", "1": "card"})
    folder = tmp_path / "share" / "jupyter" / "kernels"
    assert call("kernels", "--list")[1] == f"none in {folder}: ./lab kernels installs them\n"
    code, out, _ = call("kernels")
    assert code == 0
    assert "pcclab-gpu-1   pcclab, GPU 1  (CUDA_VISIBLE_DEVICES='1')" in out and "papermill ... -k pcclab-gpu-0" in out
    assert call("kernels", "--list")[1] == out
    assert call("kernels", "--remove")[1] == "removed: pcclab-gpu-0, pcclab-gpu-1\n"
    assert call("kernels", "--remove")[1] == "removed: none, there was none\n"
    assert call("kernels", "--list", "--remove")[0] == 2


def test_jupyter_opens_the_checkout(call: Any, monkeypatch: pytest.MonkeyPatch, own_root: Path) -> None:
    def instead(program: str, arguments: list[str]) -> None:
        print(os.getcwd(), os.environ["PCCLAB_ROOT"], *arguments[1:], sep="|")
        sys.exit(0)

    monkeypatch.chdir(own_root.parent)
    monkeypatch.setattr(os, "execv", instead)
    code, out, _ = call("jupyter", "--no-browser", "--port", "8890")
    assert code == 0
    told = [own_root, own_root, "-P", "-m", "jupyterlab", f"--ServerApp.root_dir={own_root}", "--no-browser"]
    assert out == "|".join([*map(str, told), "--port", "8890"]) + "\n"
    (own_root / "notebooks").unlink()
    code, _, err = call("jupyter")
    assert code == 2 and "has no notebooks" in err


def test_test_hands_its_arguments_to_pytest(call: Any, monkeypatch: pytest.MonkeyPatch, own_root: Path) -> None:
    assert call("test")[0] == 2  # this root has no tests
    (own_root / "tests").mkdir()
    (own_root / "tests" / "test_one.py").write_text(
        "def test_a():\n    assert True\n\ndef test_b():\n    assert False\n"
    )
    assert call("test", "-q", "-k", "test_a")[0] == 0
    assert call("test", "-q", "-k", "test_b")[0] == 1


def test_a_result_is_printed_as_tables_and_lines() -> None:
    told = report.of_result(
        {"sts": {"a": {"x": 82.034, "y": "undefined"}, "b": {"x": 1}}, "one": {"z": 0.5}, "curve": [1, 2]}
    )
    assert "82.03" in told
    assert "undefined" in told
    assert "curve: 2 values" in told
    assert len({len(line.rstrip()) for line in told.split("\n\n")[0].splitlines()[:2]}) == 1


def test_figures_are_rebuilt_checked_and_listed(call: Any, own_root: Path, checkout: Path) -> None:
    code, out, _ = call("figures", "--list")
    assert code == 0 and "rankcse_terms" in out and "not redrawn: RankCSE, figure 2" in out
    (own_root / "figures").mkdir()
    shutil.copy(checkout / "figures" / "gold_ceilings.json", own_root / "figures")
    code, out, _ = call("figures", "gold_ceilings", "--check")
    assert code == 1 and "differs: gold_ceilings.pdf, gold_ceilings.png" in out
    code, out, _ = call("figures", "gold_ceilings", "rankcse_13")
    assert code == 0 and "from its JSON, 3 files" in out and "pcclab run 09 --set real" in out
    code, out, _ = call("figures", "gold_ceilings", "--check")
    assert code == 0 and "byte for byte" in out
    code, _, said = call("figures", "gold_ceiling")
    assert code == 2 and "gold_ceilings" in said
    code, _, said = call("figures", "--check", "--from-runs")
    assert code == 2 and "give one of them" in said
