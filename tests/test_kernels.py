"""The lab's kernels: one a GPU, in the environment and nowhere else, and a notebook in it sees its GPU alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from pcclab import kernels

TWO = {"0": "card", "1": "card"}


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment's own folder, and a home that nothing may touch."""
    folder = tmp_path / "an environment"
    folder.mkdir()
    monkeypatch.setattr(sys, "prefix", str(folder))
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "home" / "jupyter"))
    return folder


def test_each_gpu_gets_a_kernel_that_sees_it_alone(prefix: Path) -> None:
    assert kernels.install(TWO) == ["pcclab-gpu-0", "pcclab-gpu-1"]
    found = kernels.installed()
    assert [told["display_name"] for told in found.values()] == ["pcclab, GPU 0", "pcclab, GPU 1"]
    assert [told["env"] for told in found.values()] == [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"}]
    assert all(told["argv"][0] == sys.executable for told in found.values())
    assert not list((prefix.parent / "home").iterdir())


def test_again_changes_nothing_and_another_number_of_gpus_replaces_them(prefix: Path) -> None:
    kernels.install(TWO)
    before = {path: path.read_bytes() for path in prefix.rglob("kernel.json")}
    kernels.install(TWO)
    assert {path: path.read_bytes() for path in prefix.rglob("kernel.json")} == before
    (kernels.folder() / "python3").mkdir()
    kernels.install({"GPU-6a3F": "card"})
    assert list(kernels.installed()) == ["pcclab-gpu-gpu-6a3f"]
    assert kernels.installed()["pcclab-gpu-gpu-6a3f"]["env"] == {"CUDA_VISIBLE_DEVICES": "GPU-6a3F"}
    assert kernels.install({}) == ["pcclab-cpu"]
    assert list(kernels.installed()) == ["pcclab-cpu"]
    assert kernels.remove() == ["pcclab-cpu"]
    assert kernels.remove() == []
    assert (kernels.folder() / "python3").is_dir(), "others' kernels stay"


def test_a_notebook_in_such_a_kernel_sees_its_gpu_alone(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels.install(TWO)
    monkeypatch.setenv("JUPYTER_PATH", str(kernels.folder().parent))
    told = "import os, sys, pcclab; print(os.environ['CUDA_VISIBLE_DEVICES'], sys.executable)"
    cells = [nbformat.v4.new_code_cell(told)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), prefix / "one.ipynb")
    command = [sys.executable, "-m", "papermill", "one.ipynb", "out.ipynb", "-k", "pcclab-gpu-1", "--no-progress-bar"]
    subprocess.run(command, cwd=prefix, check=True, capture_output=True)
    (said,) = nbformat.read(prefix / "out.ipynb", as_version=4).cells[0].outputs
    assert said["text"] == f"1 {sys.executable}\n"


def test_a_folder_that_cannot_be_written_is_told(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*given: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", str(prefix))

    monkeypatch.setattr("ipykernel.kernelspec.write_kernel_spec", forbidden)
    with pytest.raises(OSError, match="cannot write .* use an environment of your own"):
        kernels.install(TWO)
