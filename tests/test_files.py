"""A reader sees the old file or the new one, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from pcclab import files


def test_text_and_json_are_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.json"
    files.write_json(path, {"b": 1, "a": "ä"})
    assert list(json.loads(path.read_text(encoding="utf8")).items()) == [("b", 1), ("a", "ä")]
    files.write_text(path, "new\n")
    assert path.read_bytes() == b"new\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["a.json"]


def test_the_mode_follows_the_umask_and_not_the_temporary_file(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        files.write_text(tmp_path / "a", "x")
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


def test_nan_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.write_json(path, 1)
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        files.write_json(path, float("nan"))
    assert json.loads(path.read_text()) == 1


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), KeyboardInterrupt()])
def test_an_error_in_between_leaves_the_old_file_and_no_litter(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a"
    files.write_text(path, "old")

    def half() -> None:
        with files.replacing(path) as temporary:
            temporary.write_text("half of the n")
            raise error

    with pytest.raises(type(error)):
        half()
    assert path.read_text() == "old"
    assert list(tmp_path.glob(".a*")) == []


def test_a_folder_becomes_visible_whole_and_marked(tmp_path: Path) -> None:
    target = tmp_path / "model"
    for content in ("first", "second"):
        with files.replacing_folder(target) as temporary:
            (temporary / "weights").write_text(content)
            assert not files.is_complete(temporary)
        assert files.is_complete(target)
        assert (target / "weights").read_text() == content
    assert sorted(entry.name for entry in target.iterdir()) == [files.COMPLETE, "weights"]


def test_a_folder_that_broke_off_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with files.replacing_folder(target) as temporary:
        (temporary / "weights").write_text("old")

    def half() -> None:
        with files.replacing_folder(target) as temporary:
            (temporary / "weights").write_text("half")
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        half()
    assert (target / "weights").read_text() == "old"
    assert sorted(os.listdir(tmp_path / "model")) == [files.COMPLETE, "weights"]
