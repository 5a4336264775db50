"""An encoder runs under mteb and gets there the score that this lab gives it."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np
import pytest

from pcclab import data, encoders, evaluation
from pcclab.encoders.mteb_adapter import MTEBEncoder

needs_mteb = pytest.mark.skipif(
    importlib.util.find_spec("mteb") is None,
    reason="mteb is not installed: pip install -e '.[mteb]', then run this again",
)
# mteb and what it imports warn of their own affairs, which are not this lab's errors.
theirs = pytest.mark.filterwarnings("ignore")


def task_of(table: data.ScoredPairs) -> Any:
    """An STS task that holds its data in memory, and so needs no hub."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from datasets import Dataset, DatasetDict
        from mteb.abstasks.sts import AbsTaskSTS
        from mteb.abstasks.task_metadata import TaskMetadata

    class InMemory(AbsTaskSTS):
        metadata = TaskMetadata(
            name="InMemorySTS", description="Pairs held in memory.", reference=None, type="STS", category="t2t",
            modalities=["text"], eval_splits=["test"], eval_langs=["eng-Latn"], main_score="cosine_spearman",
            dataset={"path": "none", "revision": "1"}, date=("2024-01-01", "2024-01-01"), domains=[], task_subtypes=[],
            license="apache-2.0", annotations_creators="derived", dialect=[], sample_creation="created",
            bibtex_citation="",
        )  # fmt: skip

        def load_data(self, **options: Any) -> None:
            columns = {"sentence1": table.first, "sentence2": table.second, "score": table.gold}
            rows = {name: list(column) for name, column in columns.items()}
            self.dataset = DatasetDict({"test": Dataset.from_dict(rows)})
            self.data_loaded = True

    return InMemory()


def main_score(encoder: encoders.Encoder, table: data.ScoredPairs) -> dict[str, float]:
    import mteb

    done = mteb.evaluate(MTEBEncoder(encoder), task_of(table), cache=None, co2_tracker=False, show_progress_bar=False)
    (scores,) = done.task_results[0].scores["test"]
    return dict(scores)


@needs_mteb
@theirs
def test_mteb_takes_it_for_an_encoder_and_knows_it_by_its_weights() -> None:
    from mteb.models import EncoderProtocol

    adapter = MTEBEncoder(encoders.load("tiny"))
    assert isinstance(adapter, EncoderProtocol)
    meta = adapter.mteb_model_meta
    assert (meta.name, meta.embed_dim, meta.max_tokens) == ("pcclab/tiny", 64, 512)
    assert meta.revision == encoders.load("tiny").fingerprint[:16]
    assert meta.revision != MTEBEncoder(encoders.load("tiny", seed=1)).mteb_model_meta.revision


@needs_mteb
@theirs
def test_an_in_memory_task_scores_as_ours() -> None:
    table = data.load("stsb", source="synthetic")
    encoder = encoders.load("tiny")
    ours = evaluation.sts_pairs(encoder, {"stsb": table}).tasks["stsb"]
    scores = main_score(encoder, table)
    assert 100 * scores["cosine_spearman"] == pytest.approx(ours.spearman, abs=0.01)
    assert 100 * scores["spearman"] == pytest.approx(ours.spearman, abs=0.01)  # by the adapter's own similarity
    assert 100 * scores["cosine_pearson"] == pytest.approx(ours.pearson, abs=0.01)


@needs_mteb
@theirs
@pytest.mark.real_data
def test_minilm_scores_under_mteb_what_is_published_for_it(senteval: str) -> None:
    scores = main_score(encoders.load("minilm"), data.load("stsb", source=senteval))
    assert 100 * scores["main_score"] == pytest.approx(82.03, abs=0.01)


@needs_mteb
@theirs
def test_mtebs_own_mock_tasks_pass(tmp_path: Any) -> None:
    import mteb
    from mteb.mocks.mock_tasks import sts as mocks

    done = mteb.evaluate(MTEBEncoder(encoders.load("tiny")), mocks.MockSTSTask(), cache=mteb.ResultCache(tmp_path),
                         co2_tracker=False, show_progress_bar=False)  # fmt: skip
    assert -1 <= done.task_results[0].get_score() <= 1


def test_batches_are_read_in_order_and_blank_texts_are_a_full_stop() -> None:
    encoder = encoders.load("tiny")
    found = MTEBEncoder(encoder).encode([{"text": ["a wren", "  "]}, {"text": ["a crow"]}], show_progress_bar=False)
    np.testing.assert_allclose(found, encoder.encode(["a wren", ".", "a crow"]), atol=1e-5)


def test_what_is_not_text_and_what_is_no_name_are_refused() -> None:
    with pytest.raises(ValueError, match="a batch holds image and no text"):
        MTEBEncoder(encoders.load("tiny")).encode([{"image": ["x"]}])
    with pytest.raises(ValueError, match="mteb wants 'organisation/model'"):
        MTEBEncoder(encoders.load("tiny"), name="mine")
    assert MTEBEncoder(encoders.load("tiny", layers=1)).name == "pcclab/tiny-first-1-of-2-layers"
