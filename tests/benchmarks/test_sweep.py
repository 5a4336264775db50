"""The sweep `losses`, 12 runs of notebook 03 on synthetic data, on two slots against one run after another; two cores.

python -m pytest tests/benchmarks/test_sweep.py -m slow -s        # ten minutes on a quiet machine; or:
python tests/benchmarks/test_sweep.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from _measure import keep

from pcclab import sweep

CHECKOUT = Path(__file__).resolve().parents[2]
HOW = (
    "parameters/sweeps/losses.yaml, 4 losses x 3 seeds of notebook 03 with its smoke set, each side in an empty root "
    "where the stage 1 they stand on was run before, held to two cores; one_after_another: pcclab sweep --slots 1, the "
    "run has both cores; two_slots: --slots 2, a run a core; finished_again: the same command when all is finished; "
    "seconds on the wall; load: of the machine just before"
)


def measure() -> dict[str, Any]:
    """Seconds of both sides, and whether they found the same."""
    seconds: dict[str, float] = {}
    loads: dict[str, float] = {}
    results: dict[str, list[Any]] = {}
    for name, slots in (("one_after_another", 1), ("two_slots", 2)):
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch)
            for part in ("notebooks", "parameters", "pyproject.toml"):
                (root / part).symlink_to(CHECKOUT / part)
            _pcclab(root, "run", "02", "--set", "smoke")
            loads[name] = round(os.getloadavg()[0], 1)
            seconds[name] = _pcclab(root, "sweep", "losses", "--slots", str(slots))
            seconds["finished_again"] = _pcclab(root, "sweep", "losses", "--slots", str(slots))
            os.environ["PCCLAB_ROOT"] = str(root)
            results[name] = [run.result["after"]["average"] for run in sweep.load("losses").runs]
            del os.environ["PCCLAB_ROOT"]
    apart = max(abs(a - b) for a, b in zip(*results.values(), strict=True))
    ratio = seconds["one_after_another"] / seconds["two_slots"]
    rounded = {name: round(value, 1) for name, value in seconds.items()}
    return {"seconds": rounded, "ratio": round(ratio, 2), "load": loads, "largest_difference": apart}


def _pcclab(root: Path, *arguments: str) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment |= {"PCCLAB_ROOT": str(root), "PYTHONPATH": str(CHECKOUT)}
    two = sorted(os.sched_getaffinity(0))[:2]
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pcclab", *arguments], cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, two),
    )  # fmt: skip
    return time.perf_counter() - began


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_slots_are_faster_than_one_and_find_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    measured = measure()
    with capsys.disabled():
        print(f"\nsweep of 12: {measured}")
    assert measured["largest_difference"] < 0.05, "points; a run on one thread adds up in another order than on two"
    assert measured["ratio"] > 1.2


if __name__ == "__main__":
    result = measure()
    print(result)
    print(keep("sweep", HOW, result))
