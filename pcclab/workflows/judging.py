"""One encoder judged on everything: each unit is kept on disk, so that a second call reads what the first one found."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcclab import data, evaluation, files, records
from pcclab.evaluation.transfer import Protocol
from pcclab.workflows.judging_units import RESAMPLES, Rows, Unit, accuracies, units

if TYPE_CHECKING:
    from pcclab.encoders import Encoder


@dataclass(frozen=True)
class Judged:
    """What was found of one unit.

    Args:
        rows: see `judging_units.Rows`.
        seconds: what it took when it was computed; loading the data is not in it.
        load: the machine's load average when it began: where it is above 1, other work may have slowed it.
        file: where it is kept, with the encoder, the data and the machine.
        reused: whether it was read rather than computed.
    """

    rows: Rows
    seconds: float
    load: float
    file: Path
    reused: bool


def judge(
    encoder: Encoder,
    root: Path,
    *,
    source: str | os.PathLike[str] | None = None,
    protocol: Protocol = "lbfgs",
    only: tuple[str, ...] = (),
    seed: int = 0,
    again: bool = False,
    tell: Callable[[str], None] = print,
) -> dict[str, Judged]:
    """Judge an encoder on the STS tasks, the transfer tasks, the rank tasks and its geometry, with intervals.

    Args:
        encoder: anything with `encode` and a `fingerprint`.
        root: the checkout; what is found is kept under `runs/evaluations`, the embeddings under `runs/embeddings`.
        source: as in `data.load`.
        protocol: of the transfer tasks, see `evaluation.transfer`.
        only: some parts, such as "sts"; empty for all.
        seed: of the bootstrap.
        again: compute also what is kept.
        tell: takes each line of progress.

    Returns: unit -> what was found. A unit is kept under the fingerprints of encoder, data and evaluating code and its
        options: where one of them changes it is computed anew.

    Raises: ValueError and FileNotFoundError for missing data, before anything is embedded; ValueError for an embedding
        that is not finite.
    """
    chosen = units(source, protocol=protocol, only=only)
    about = {"encoder": str(encoder), "source": data.describe(source)}
    fingerprint = encoder.fingerprint
    home = root / "runs" / "evaluations" / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
    found: dict[str, Judged] = {}
    for number, unit in enumerate(chosen, 1):
        key = _key(unit, fingerprint, seed)
        file = home / f"{unit.name.replace('/', '-')}-{_short(key)}.json"
        kept, at = None if again else _read(file, tell), f"[{number}/{len(chosen)}] {unit.name}"
        if kept is not None:
            tell(f"{at}: kept from {kept['computed']}, it took {kept['seconds']:.1f} s then")
            found[unit.name] = Judged(kept["rows"], kept["seconds"], kept["load"], file, True)
            continue
        tell(f"{at}: computing")
        began, load = time.monotonic(), round(os.getloadavg()[0], 2)
        rows = unit.compute(encoder, root / "runs" / "embeddings", seed)
        seconds = round(time.monotonic() - began, 3)
        timed = {"computed": time.strftime("%Y-%m-%d %H:%M:%S"), "seconds": seconds, "load": load}
        machine = {**records.surroundings(root), **records.device()}
        files.write_json(file, records.plain({**about, **key, **timed, "rows": rows, "provenance": machine}))
        tell(f"{at}: done in {seconds:.1f} s")
        found[unit.name] = Judged(rows, seconds, load, file, False)
    return found


def by_part(found: Mapping[str, Judged], *, seed: int = 0) -> dict[str, Rows]:
    """The units' rows as one table a part, the transfer tasks with their average.

    Args:
        found: what was judged, by unit.
        seed: of the resampling behind the average's interval.
    """
    tables: dict[str, Rows] = {}
    for name, judged in found.items():
        tables.setdefault(name.partition("/")[0], {}).update(judged.rows)
    return {part: accuracies(rows, seed) if part == "transfer" else rows for part, rows in tables.items()}


def _key(unit: Unit, fingerprint: str, seed: int) -> dict[str, Any]:
    tables = {name: table.fingerprint for name, table in unit.tables.items()}
    options = {**unit.options, "resamples": RESAMPLES, "seed": seed}
    return {"unit": unit.name, "fingerprint": fingerprint, "data": tables, "options": options, "code": _code()}


def _short(key: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]


def _read(file: Path, tell: Callable[[str], None]) -> dict[str, Any] | None:
    """What is kept; None where nothing is or where it is damaged, and that is said."""
    try:
        kept = json.loads(file.read_text(encoding="utf8"))
        _ = kept["rows"], kept["seconds"], kept["load"], kept["computed"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        tell(f"{file} is damaged: computed anew")
        return None
    return dict(kept)


@cache
def _code() -> str:
    """sha256 of the evaluating code: a kept figure is never that of another version."""
    digest = hashlib.sha256()
    for file in (*sorted(Path(evaluation.__file__).parent.glob("*.py")), Path(__file__).with_name("judging_units.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
