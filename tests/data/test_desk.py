"""What the `pcclab data` commands stand on: checking a source, showing rows, fetching and unpacking safely."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from pcclab import data
from pcclab.data import catalogue, desk, hub, synthetic, synthetic_texts


def test_a_check_of_the_synthetic_source_is_all_ok() -> None:
    found = data.check("synthetic")
    assert set(found["state"]) == {"ok"}
    assert (found["expected"] == found["found"]).all()
    assert len(found) == len(synthetic.ROWS) + len(synthetic_texts.declared())


@pytest.mark.real_data
def test_a_check_of_the_real_data_is_all_ok(senteval: Path) -> None:
    found = data.check(senteval)
    assert set(found["state"]) == {"ok"}
    assert len(found) == sum(len(c.counts) for c in catalogue.CORPORA.values() if c.layout != "none")


def test_a_check_tells_what_is_wrong_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "STS" / "STSBenchmark"
    folder.mkdir(parents=True)
    (folder / "sts-dev.csv").write_text("g\tf\ty\ti\t2.0\tmy kite\tyour kite\n")
    found = data.check(tmp_path).set_index(["corpus", "split"])
    assert "1 rows" in found.loc[("stsb", "dev"), "state"]
    assert "1,500 are declared" in found.loc[("stsb", "dev"), "state"]
    assert "no file" in found.loc[("sts12", "test"), "state"]
    assert (found["state"] != "ok").all()


def test_show_draws_rows_in_order_with_a_seed() -> None:
    frame = data.show("sts12", source="synthetic", rows=4)
    assert list(frame.columns) == ["first", "second", "gold", "subset"]
    assert frame.index.is_monotonic_increasing
    assert frame.equals(data.show("sts12", source="synthetic", rows=4))
    assert not frame.equals(data.show("sts12", source="synthetic", rows=4, seed=1))
    assert len(data.show("sickr", split="dev", source="synthetic", rows=1000)) == 100
    with pytest.raises(ValueError, match="rows is 0: ask for at least 1"):
        data.show("sts12", source="synthetic", rows=0)


def archive_of(folder: Path, target: Path, *, below: str = "") -> Path:
    with tarfile.open(target, "w") as tar:
        tar.add(folder, arcname=below or ".")
    return target


def with_member(target: Path, name: str, content: bytes = b"x", **changes: Any) -> Path:
    with tarfile.open(target, "w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        for key, value in changes.items():
            setattr(member, key, value)
        tar.addfile(member, io.BytesIO(content))
    return target


@pytest.mark.real_data
@pytest.mark.parametrize("below", ["", "data/downstream"])
def test_fetch_unpacks_what_then_loads(
    senteval: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    only_sts = tmp_path / "source"
    for part in ("STS", "SICK"):
        shutil.copytree(senteval / part, only_sts / part)
    archive = archive_of(only_sts, tmp_path / "senteval.tar", below=below)
    asked: dict[str, Any] = {}

    def download(repo: str, filename: str, **options: Any) -> str:
        asked.update(options, repo=repo, filename=filename)
        return str(archive)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    folder = data.fetch(tmp_path / "fetched", revision="f00")
    assert asked == {
        "repo": "princeton-nlp/datasets-for-simcse",
        "filename": "senteval.tar",
        "repo_type": "dataset",
        "revision": "f00",
    }
    assert sorted(path.name for path in folder.iterdir()) == ["COMPLETE", "SICK", "SOURCE.json", "STS"]
    assert json.loads((folder / "SOURCE.json").read_text())["revision"] == "f00"
    assert len(data.stage2_pairs(source=folder)) == 5_398
    with pytest.raises(ValueError, match="fetched exists and is not empty"):
        data.fetch(folder)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("../outside.txt", {}),
        ("STS/../../outside.txt", {}),
        ("STS/link", {"type": tarfile.SYMTYPE, "linkname": "/etc/hostname", "size": 0}),
        ("STS/pipe", {"type": tarfile.CHRTYPE, "size": 0}),
    ],
)
def test_an_archive_that_reaches_outside_is_refused_and_leaves_nothing(
    tmp_path: Path, name: str, changes: dict[str, Any]
) -> None:
    archive = with_member(tmp_path / "bad.tar", name, **changes)
    with pytest.raises(ValueError, match="is not a safe, whole tar file"):
        desk.unpack(archive, tmp_path / "new")
    left = [*tmp_path.rglob("*"), *tmp_path.parent.glob("outside*")]
    assert not any(path.name.strip(".").startswith(("new", "outside")) for path in left)


def test_an_archive_that_is_no_tar_too_large_or_not_sentevals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.tar"
    broken.write_bytes(b"no tar at all")
    with pytest.raises(ValueError, match="is not a safe, whole tar file"):
        desk.unpack(broken, tmp_path / "new")
    other = with_member(tmp_path / "other.tar", "poems/one.txt")
    with pytest.raises(ValueError, match=r"holds none of STS, SICK, .* but poems: it is not SentEval's data"):
        desk.unpack(other, tmp_path / "new")
    monkeypatch.setattr(desk, "LARGEST", 3)
    with pytest.raises(ValueError, match="unpacks to 5 bytes, above the limit of 3"):
        desk.unpack(with_member(tmp_path / "large.tar", "STS/a", b"12345"), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_archive_with_other_counts_leaves_nothing(tmp_path: Path) -> None:
    archive = with_member(tmp_path / "short.tar", "STS/STS12-en-test/STS.input.MSRpar.txt", b"a\tb\n")
    with pytest.raises(FileNotFoundError, match=r"STS\.gs\.MSRpar\.txt"):
        desk.unpack(archive, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_fetch_offline_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route")

    hub.newest.cache_clear()
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", refuse)
    with pytest.raises(OSError, match=r"could not get princeton-nlp/datasets-for-simcse at its newest commit"):
        data.fetch(tmp_path / "new")
    assert not (tmp_path / "new").exists()
