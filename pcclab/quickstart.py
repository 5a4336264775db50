"""The first five minutes: notebooks 01 to 03 on embedded data, with a real small encoder, and what came out."""

from __future__ import annotations

import time

from pcclab import batch, ceiling, report, runs
from pcclab.parameters import MODELS, load_file

NOTEBOOKS = ("01_ceiling", "02_stage1_contrastive", "03_stage2_pcc_tuning")


def main(*, again: bool = False) -> None:
    """Run the smoke sets and print results, ceilings and figures.

    Raises: `batch.RunFailed` at the first notebook that fails.
    """
    began = time.monotonic()
    files = {name: runs.root() / "parameters" / name / "smoke.yaml" for name in NOTEBOOKS}
    # All three are checked before the first one starts.
    chosen = {name: runs.locate(name, load_file(name, file)) for name, file in files.items()}
    for number, (name, run) in enumerate(chosen.items(), 1):
        about = (MODELS[name].__doc__ or "").partition(": ")[2].rstrip(".")
        told = "finished before, reused" if run.finished and not again else "running"
        print(f"[{number}/{len(chosen)}] {name}: {told} ({about})", flush=True)
        if again or not run.finished:
            batch.execute(run, again=again, tell=_progress)
    print()
    for name, run in chosen.items():
        print(f"== {name}\n{report.of_run(run)}\n")
    print("the ceiling of a scorer with two levels, Spearman x 100:")
    print(f"  by the paper's formula  {100 * ceiling.levels(2, formula='paper'):.2f}")
    print(f"  by mid-ranks (scipy)    {100 * ceiling.levels(2):.2f}")
    print(
        f"\ndone in {time.monotonic() - began:.0f} s. The data above were generated: they show that everything works."
    )
    print("On real data: PCCLAB_DATA=/path/to/senteval ./lab run 03 --set real")


def _progress(line: str) -> None:
    """Of all that a notebook prints only how far it is: the rest stands in its output."""
    if " s left" in line:
        print(f"      {line}", flush=True)
