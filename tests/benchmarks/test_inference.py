"""The seven STS tasks with MiniLM: this lab's evaluation against sentence-transformers' encode and evaluator.

python -m pytest tests/benchmarks -m slow -s          # or, for more rounds:
python tests/benchmarks/test_inference.py 5
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from _measure import alternate, keep

from pcclab import data, encoders, evaluation
from pcclab.encoders.masked import _package_folder

HOW = (
    "seven STS tasks, all-MiniLM-L6-v2, float32, same threads, tables loaded beforehand; theirs: "
    "EmbeddingSimilarityEvaluator (encode of both sides, batch 32, sorted by length) task by task; ours: "
    "evaluation.sts_pairs; one warm-up of each, then turn about in one process; ratio = theirs / ours, round by round"
)


def measure(source: str | Path, rounds: int) -> dict[str, Any]:
    """Times and scores of both sides."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    tables = data.sts_tests(source=source)
    mine, model = encoders.load("minilm", device="cpu"), SentenceTransformer(_package_folder(), device="cpu")
    scores: dict[str, dict[str, float]] = {}

    def ours(turn: int) -> None:
        scores["ours"] = dict(evaluation.sts_pairs(mine, tables).scores)

    def theirs(turn: int) -> None:
        scores["theirs"] = {}
        for name, table in tables.items():
            evaluator = EmbeddingSimilarityEvaluator(list(table.first), list(table.second), list(table.gold / 5))
            scores["theirs"][name] = 100 * evaluator(model)["spearman_cosine"]

    measured = alternate(ours, theirs, rounds)
    apart = max(abs(scores["ours"][name] - scores["theirs"][name]) for name in tables)
    return {**measured, "scores": scores, "largest_difference": apart}


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.timeout(1800)
def test_at_least_twice_as_fast_with_the_same_scores(senteval, capsys):
    measured = measure(senteval, rounds=2)
    with capsys.disabled():
        print(f"\nSTS evaluation: {measured['ratio']}, seconds {measured['median_seconds']}")
    assert measured["largest_difference"] < 0.01
    assert measured["ratio"]["median"] >= 2


if __name__ == "__main__":
    source = Path(__file__).resolve().parents[3] / "shared" / "data" / "senteval"
    result = measure(
        data.resolve(None) if not source.is_dir() else source, int(sys.argv[1]) if len(sys.argv) > 1 else 3
    )
    print(result["ratio"], result["median_seconds"], result["largest_difference"])
    print(keep("sts_inference", HOW, result))
