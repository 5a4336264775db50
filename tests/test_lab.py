"""The script `lab`: whole installations only, once, in any folder; with a Python that only pretends to install."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

HAS_GPU = (
    shutil.which("nvidia-smi") is not None or Path("/dev/nvidia0").exists() or Path("/proc/driver/nvidia").exists()
)
PYTHON = """#!/bin/sh
printf '%s\\n' "$*" >>"$LOG"
case "$*" in
-V) echo "Python 3.12.1" ;;
*version_info*) exit "${OLD:-0}" ;;
"-m venv --clear "*) for last in "$@"; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
*importlib.metadata*) if [ -n "${HAVE-}" ]; then echo "$HAVE"; else exit 1; fi ;;
*"pip config"*) exit 1 ;;
*"pip install"*--no-index*) exit "${NO_LOCAL:-0}" ;;
*"uv pip install"*) exit "${NO_UV:-0}" ;;
*"pip install"*-e*) sleep "${SLOW:-0}"; exit "${BROKEN:-0}" ;;
*"-m pcclab"*) echo "pcclab was called: root $PCCLAB_ROOT" ;;
esac
"""


class Lab:
    def __init__(self, checkout: Path, folder: Path) -> None:
        self.here = folder / "a check out"
        self.here.mkdir()
        for name in ("lab", "pyproject.toml", "constraints.txt"):
            shutil.copy(checkout / name, self.here / name)
        self.log = folder / "log"
        self.log.touch()
        tools = folder / "tools"
        tools.mkdir()
        (tools / "python3").write_text(PYTHON)
        (tools / "python3").chmod(0o755)
        self.python = tools / "python3"
        self.environment = {"PATH": f"{tools}:/usr/bin:/bin", "LOG": str(self.log), "HOME": str(folder)}

    def start(self, *arguments: str, cwd: str | Path = "/", **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["/bin/sh", str(self.here / "lab"), *arguments],
            cwd=cwd,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments: str, **options: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def installs(self) -> list[str]:
        """Installations of the package itself since the last look."""
        lines = [line for line in self.log.read_text().splitlines() if "pip install" in line and " -e " in line]
        self.log.write_text("")
        return lines


@pytest.fixture
def lab(checkout: Path, tmp_path: Path) -> Lab:
    return Lab(checkout, tmp_path)


@pytest.mark.parametrize("shell", ["sh", "dash", "bash"])
def test_the_script_is_posix(checkout: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    subprocess.run([shell, "-n", str(checkout / "lab")], check=True)
    assert os.access(checkout / "lab", os.X_OK)
    assert os.access(checkout / ".ci" / "run", os.X_OK)


def test_shellcheck_finds_nothing(checkout: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here")
    subprocess.run(["shellcheck", str(checkout / "lab"), str(checkout / ".ci" / "run")], check=True)


def test_the_first_call_installs_and_the_second_is_quick(lab: Lab, tmp_path: Path) -> None:
    code, out, err = lab.call("doctor")
    assert code == 0
    assert out == f"pcclab was called: root {lab.here}\n"
    assert "installing" in err
    (line,) = lab.installs()
    assert "-c" in line
    assert line.endswith(f"-e {lab.here}")
    began = time.perf_counter()
    code, out, err = lab.call("doctor")
    assert time.perf_counter() - began < 0.5
    assert (code, err) == (0, "")
    assert lab.installs() == []


def test_test_installs_the_tests_tools_too_and_that_holds_for_all(lab: Lab) -> None:
    lab.call("doctor")
    lab.installs()
    assert lab.call("test", "-k", "x")[0] == 0
    (line,) = lab.installs()
    assert line.endswith(f"-e {lab.here}[dev]")
    lab.call("test")
    lab.call("doctor")
    assert lab.installs() == []


def test_changed_pins_install_again(lab: Lab) -> None:
    lab.call("test")
    lab.installs()
    with (lab.here / "constraints.txt").open("a") as file:
        file.write("# changed\n")
    lab.call("doctor")
    assert len(lab.installs()) == 1
    lab.call("test")
    assert len(lab.installs()) == 1, "the tests' tools may be of the old pins"


def test_a_moved_checkout_installs_again(lab: Lab) -> None:
    lab.call("doctor")
    lab.installs()
    lab.here = lab.here.rename(lab.here.with_name("moved"))
    lab.call("doctor")
    assert len(lab.installs()) == 1


def test_a_broken_installation_leaves_no_stamp(lab: Lab) -> None:
    assert lab.call("doctor", BROKEN="1")[0] != 0
    assert lab.call("doctor", BROKEN="1")[0] != 0
    assert len(lab.installs()) == 2
    assert lab.call("doctor")[0] == 0
    assert not (lab.here / ".lab" / "lock").exists()


def wait_for(lab: Lab, text: str) -> None:
    for _ in range(200):
        if text in lab.log.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{text!r} did not come: {lab.log.read_text()}")


@pytest.mark.parametrize("signal", ["terminate", "kill"])
def test_a_killed_installation_leaves_no_stamp_and_no_lasting_lock(lab: Lab, signal: str) -> None:
    process = lab.start("doctor", SLOW="2")
    wait_for(lab, " -e ")
    getattr(process, signal)()
    process.communicate()
    lab.installs()
    code, _, err = lab.call("doctor")
    assert code == 0
    assert len(lab.installs()) == 1
    assert ("an earlier call ended" in err) == (signal == "kill")


def test_two_calls_at_once_install_once(lab: Lab) -> None:
    calls = [lab.start("doctor", SLOW="2") for _ in range(3)]
    told = [call.communicate(timeout=60) for call in calls]
    assert [call.returncode for call in calls] == [0, 0, 0]
    assert all(out.startswith("pcclab was called") for out, _ in told)
    assert sum("waiting for it" in err for _, err in told) == 2
    assert len(lab.installs()) == 1


def test_an_active_conda_environment_is_used(lab: Lab, tmp_path: Path) -> None:
    conda = tmp_path / "conda" / "envs" / "mine"
    (conda / "bin").mkdir(parents=True)
    shutil.copy(lab.python, conda / "bin" / "python")
    assert lab.call("doctor", CONDA_PREFIX=str(conda))[0] == 0
    assert not (lab.here / ".venv").exists()
    assert (conda / ".pcclab-base").is_file()
    assert lab.call("doctor", CONDA_PREFIX=str(conda), CONDA_DEFAULT_ENV="base")[0] == 0
    assert (lab.here / ".venv").exists(), "conda's own environment is left alone"


def test_an_old_python_is_told(lab: Lab) -> None:
    for name in ("python3.13", "python3.12", "python3.11"):
        shutil.copy(lab.python, lab.python.with_name(name))
    code, _, err = lab.call("doctor", OLD="1")
    assert code == 2
    assert "no Python 3.11 or newer on PATH" in err


def test_a_virtual_environment_that_lost_its_python_is_made_anew(lab: Lab) -> None:
    lab.call("doctor")
    (lab.here / ".venv" / "bin" / "python").unlink()
    assert lab.call("doctor")[0] == 0
    assert len(lab.installs()) == 2


def test_uv_is_used_where_it_is(lab: Lab) -> None:
    uv = lab.python.with_name("uv")
    uv.write_text(
        """#!/bin/sh
printf 'uv %s\\n' "$*" >>"$LOG"
[ "$1" = venv ] || exit 0
for last in "$@"; do :; done
mkdir -p "$last/bin"
cp "$(dirname "$0")/python3" "$last/bin/python"
"""
    )
    uv.chmod(0o755)
    assert lab.call("doctor", PIP_FIND_LINKS="/some/wheels")[0] == 0
    log = lab.log.read_text().splitlines()
    assert next(line.split()[1] for line in log if line.startswith("uv ")) == "venv"
    last = [line for line in log if line.startswith("uv pip install")][-1]
    assert "--find-links /some/wheels" in last
    assert last.endswith(f"-e {lab.here}")
    assert not any("-m pip install" in line for line in log)


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU: torch comes with CUDA")
class TestTorchWithoutGpu:
    def pin(self, lab: Lab) -> str:
        (line,) = [
            line for line in (lab.here / "constraints.txt").read_text().splitlines() if line.startswith("torch==")
        ]
        return line

    def test_a_local_folders_build_comes_first(self, lab: Lab) -> None:
        assert "from a local folder" in lab.call("doctor")[2]
        assert "torch-backend" not in lab.log.read_text()

    def test_else_uv_brings_the_cpu_build(self, lab: Lab) -> None:
        assert "by way of uv" in lab.call("doctor", NO_LOCAL="1")[2]
        assert f"--torch-backend=cpu {self.pin(lab)}" in lab.log.read_text()

    def test_else_the_default_build_comes_and_that_is_said(self, lab: Lab) -> None:
        code, _, err = lab.call("doctor", NO_LOCAL="1", NO_UV="1")
        assert code == 0
        assert "the default build comes instead" in err

    def test_what_is_there_is_left(self, lab: Lab) -> None:
        lab.call("doctor", HAVE=f"{self.pin(lab)}+cpu")
        assert "--no-index" not in lab.log.read_text()
