"""Teachers: each one's own cosines, mixed; embedded once, kept on disk, and never taken for another table's."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from pcclab import encoders, files
from pcclab.encoders import Encoder
from pcclab.training.teachers import ALPHA, Teachers, gather

TEXTS = ("a wren sings", "a crow", "Rain falls on the harbour wall.", "a crow", "seven geese over the frozen marsh")


@pytest.fixture(scope="module")
def one():
    return encoders.load("tiny", seed=1)


@pytest.fixture(scope="module")
def two():
    return encoders.load("tiny", seed=2, pooling="cls", max_tokens=8)


@pytest.fixture
def cache(tmp_path):
    """A folder that is not there yet."""
    return tmp_path / "cache"


@pytest.fixture
def calls(monkeypatch):
    """Names of the encoders whose `encode` was called."""
    seen = []
    original = Encoder.encode
    monkeypatch.setattr(
        Encoder, "encode", lambda self, *a, **k: seen.append(self.settings.revision) or original(self, *a, **k)
    )
    return seen


def slow(teachers: list[Encoder], mix: list[float], rows: list[int]) -> list[list[float]]:
    """Pair by pair, one text at a time, in float64."""
    table = []
    for i in rows:
        table.append([])
        for j in rows:
            total = 0.0
            for encoder, share in zip(teachers, mix, strict=True):
                u, v = (encoder.encode([TEXTS[k]])[0].astype(float) for k in (i, j))
                total += share * sum(u * v) / math.sqrt(sum(u * u) * sum(v * v))
            table[-1].append(total)
    return table


@pytest.mark.filterwarnings("ignore:.*longer than 8 tokens.*:UserWarning")
@pytest.mark.parametrize(
    ("mix", "shares"),
    [(None, [1 / 3, 2 / 3]), (0.8, [0.8, 0.2]), ([0.25, 0.75], [0.25, 0.75]), (0, [0, 1]), (1, [1, 0])],
)
def test_similarity_is_the_slow_loop_over_pairs(one, two, mix, shares):
    rows = [4, 0, 3, 1]
    similarity = gather([one, two], TEXTS, mix=mix).similarity(rows)
    assert similarity.dtype == torch.float32 and not similarity.requires_grad
    assert_allclose(similarity, slow([one, two], shares, rows), atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*longer than 8 tokens.*:UserWarning")
def test_alpha_mixes_the_single_teachers(one, two):
    rows = range(len(TEXTS))
    first, second = (gather([encoder], TEXTS).similarity(rows) for encoder in (one, two))
    assert_allclose(gather([one, two], TEXTS).similarity(rows), ALPHA * first + (1 - ALPHA) * second, atol=1e-6)
    third = encoders.load("tiny", seed=3, pooling="last")
    equal = gather([one, two, third], TEXTS).similarity(rows)
    assert_allclose(equal, (first + second + gather([third], TEXTS).similarity(rows)) / 3, atol=1e-6)
    assert not np.allclose(first, second, atol=1e-3)


def test_teachers_of_other_widths_and_tokenizers_mix(one):
    minilm = encoders.load("minilm", layers=1)
    teachers = gather([minilm, one], TEXTS)
    assert [vectors.shape for vectors in teachers.embeddings] == [(5, 384), (5, 64)]
    assert_allclose(teachers.similarity([0, 2]), slow([minilm, one], [1 / 3, 2 / 3], [0, 2]), atol=1e-5)


def test_a_text_is_its_own_likeness_repeats_too_and_autocast_does_not_round_it(one):
    teachers = gather([one], TEXTS)
    plain = teachers.similarity([1, 0, 3])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        similarity = teachers.similarity(np.array([1, 0, 3]))
    assert torch.equal(similarity, plain)
    assert_allclose(similarity.diagonal(), 1, atol=1e-6)
    assert_allclose(similarity, similarity.T, atol=1e-6)
    assert_allclose(similarity[0, 2], 1, atol=1e-6)


def test_rows_outside_the_texts_are_refused(one):
    teachers = gather([one], TEXTS)
    assert len(teachers) == 5 and teachers.similarity([]).shape == (0, 0)
    for rows in ([0, 5], [-1]):
        with pytest.raises(IndexError, match=r"of 5 texts: they go 0\.\.4"):
            teachers.similarity(rows)


def test_each_text_is_embedded_once_and_then_read_back(one, calls, cache):
    fresh = gather([one], TEXTS, cache=cache)
    assert calls == ["seed 1"]
    again = gather([one], list(TEXTS), cache=cache)
    assert calls == ["seed 1"]
    assert np.array_equal(again.embeddings[0], fresh.embeddings[0])
    assert again.fingerprint == fresh.fingerprint == gather([one], TEXTS).fingerprint
    assert len(list((cache).iterdir())) == 1


@pytest.mark.filterwarnings("ignore:.*longer than . tokens.*:UserWarning")
def test_another_model_pooling_length_or_text_is_another_file(one, calls, cache):
    def files_after(encoder, texts=TEXTS):
        gather([encoder], texts, cache=cache)
        return len(list(cache.glob("*.safetensors")))

    assert files_after(one) == 1
    assert files_after(encoders.load("tiny", seed=2)) == 2
    assert files_after(encoders.load("tiny", seed=1, pooling="cls")) == 3
    assert files_after(encoders.load("tiny", seed=1, max_tokens=7)) == 4
    assert files_after(one, TEXTS[::-1]) == 5
    assert files_after(one, TEXTS[:-1]) == 6
    assert files_after(one, ("a wren", "sings")) == files_after(one, ("a", "wren sings")) - 1 == 7
    assert len(calls) == 8
    assert files_after(one) == 8 and len(calls) == 8


def test_the_fingerprint_sees_teachers_shares_and_texts(one):
    other = encoders.load("tiny", seed=2)
    made = [
        gather([one, other], TEXTS),
        gather([other, one], TEXTS),
        gather([one, other], TEXTS, mix=0.5),
        gather([one, other], TEXTS[::-1]),
        gather([one], TEXTS),
    ]
    assert len({teachers.fingerprint for teachers in made}) == len(made)
    assert gather([one, other], TEXTS, mix=[ALPHA, 1 - ALPHA]).fingerprint == made[0].fingerprint


def damages(file):
    """Ways in which a cache file can be broken."""
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[-7] ^= 64
    return {"cut": whole[: len(whole) // 2], "empty": b"", "flipped": bytes(flipped), "noise": b"\xff" * 400}


@pytest.mark.parametrize("way", ["cut", "empty", "flipped", "noise"])
def test_a_damaged_cache_file_is_told_and_made_again(one, calls, cache, way):
    fresh = gather([one], TEXTS, cache=cache)
    (file,) = cache.iterdir()
    file.write_bytes(damages(file)[way])
    with pytest.warns(UserWarning, match=r"safetensors is damaged \(.*\): its embeddings are computed again"):
        again = gather([one], TEXTS, cache=cache)
    assert np.array_equal(again.embeddings[0], fresh.embeddings[0]) and len(calls) == 2
    assert np.array_equal(gather([one], TEXTS, cache=cache).embeddings[0], fresh.embeddings[0]) and len(calls) == 2


def test_a_file_under_anothers_name_is_not_taken_for_it(one, cache):
    gather([one], TEXTS, cache=cache / "a")
    gather([one], TEXTS[::-1], cache=cache / "b")
    (ours,), (theirs,) = (cache / "a").iterdir(), (cache / "b").iterdir()
    ours.write_bytes(theirs.read_bytes())
    with pytest.warns(UserWarning, match="it is of another teacher or of other texts"):
        gather([one], TEXTS, cache=cache / "a")


def test_a_write_that_fails_leaves_no_cache_file(one, calls, cache, monkeypatch):
    def full(*arguments):
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "sync", full)
        with pytest.raises(OSError, match="no space left"):
            gather([one], TEXTS, cache=cache)
    assert not list(cache.glob("*"))
    gather([one], TEXTS, cache=cache)
    assert len(calls) == 2


def test_a_killed_writers_half_file_is_ignored(one, calls, cache):
    code = (
        "import os, signal\nfrom pcclab import encoders, files\nfrom pcclab.training import teachers\n"
        "def die(path):\n    os.truncate(path, 100)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"files.sync = die\nteachers.gather([encoders.load('tiny', seed=1)], {TEXTS!r}, cache={str(cache)!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    (half,) = cache.iterdir()
    assert half.name.startswith(".")
    assert np.array_equal(
        gather([one], TEXTS, cache=cache).embeddings[0], gather([one], TEXTS, cache=cache).embeddings[0]
    )
    assert calls == ["seed 1"]


def test_other_texts_than_the_tables_are_refused(one):
    teachers = gather([one], TEXTS)
    teachers.check(list(TEXTS))
    with pytest.raises(
        ValueError, match=r"teacher has 5 texts, the table has 4: gather the teachers on the table's own"
    ):
        teachers.check(TEXTS[:4])
    with pytest.raises(ValueError, match="text 1 is 'a crow' to the teacher and 'A crow' in the table"):
        teachers.check((TEXTS[0], "A crow", *TEXTS[2:]))


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0])
def test_an_embedding_without_a_cosine_names_its_text(monkeypatch, bad, cache):
    encoder = encoders.load("tiny")
    original = Encoder.embed

    def broken(self, ids, mask):
        vectors = original(self, ids, mask)
        vectors[mask.sum(1) <= 5] = bad
        return vectors

    monkeypatch.setattr(Encoder, "embed", broken)
    with pytest.raises(ValueError, match=r"tiny gives text 1, 'a crow', an embedding .* \(2 such texts\)"):
        gather([encoder], TEXTS, cache=cache)
    assert not list(cache.glob("*"))


@pytest.mark.parametrize(
    ("number", "mix", "message"),
    [
        (0, None, "0 teachers: give at least 1 encoder"),
        (1, 0.5, "mix is 0.5, one number, for 1 teacher"),
        (3, 0.5, "mix is 0.5, one number, for 3 teacher"),
        (2, [1.0], "mix has 1 shares for 2 teacher"),
        (2, [0.5, 0.6], "mix is 0.5, 0.6: give shares from 0 to 1 that sum to 1"),
        (2, [-0.5, 1.5], "mix is -0.5, 1.5"),
        (2, 1.2, "mix is 1.2, -0.2"),
        (2, math.nan, "mix is nan, nan"),
        (2, [math.inf, -math.inf], "mix is inf, -inf"),
    ],
)
def test_shares_that_do_not_add_up_are_refused_before_any_text_is_embedded(one, calls, number, mix, message):
    with pytest.raises(ValueError, match=message):
        gather([one] * number, TEXTS, mix=mix)
    assert calls == []


@pytest.mark.parametrize("texts", [(), "a wren"])
def test_no_texts_are_refused(one, texts):
    with pytest.raises(ValueError, match="no texts: give the teachers the list"):
        gather([one], texts)


def test_teachers_say_who_they_are(one):
    teachers = gather([one], TEXTS)
    assert isinstance(teachers, Teachers)
    assert repr(teachers) == f"Teachers(1 of {one.fingerprint[:8]}; 5 texts)"


def test_the_ports_teachers_read_the_students_token_ids():
    student, teacher = encoders.load("tiny", seed=1), encoders.load("tiny", seed=2)
    same = gather([teacher], ["a wren", "a crow"], student=student)
    # One vocabulary: the port is right by luck.
    own = gather([teacher], ["a wren", "a crow"])
    torch.testing.assert_close(same.similarity([0, 1]), own.similarity([0, 1]))
    words = encoders.load("minilm", layers=1)
    with pytest.raises(ValueError, match="the student's tokenizer has 30,522 tokens and tiny knows"):
        gather([teacher], ["a wren", "a crow"], student=words)
    read = gather([words], ["a wren", "a crow", "a crowbar"], student=student)
    assert not torch.allclose(
        read.similarity([0, 1, 2]), gather([words], ["a wren", "a crow", "a crowbar"]).similarity([0, 1, 2])
    )
