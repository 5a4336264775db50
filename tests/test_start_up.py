"""What is not imported until somebody asks for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOOK = "import sys; print('bitsandbytes.nn' in sys.modules)"


def python(*lines: str, cwd: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bitsandbytes_is_executed_when_it_is_used_and_not_before(checkout: Path) -> None:
    quantised = "weights = encoders.load('tiny-llama', quantization='nf4', adapter={'rank': 2, 'alpha': 1.0})"
    used = "import bitsandbytes; print(bitsandbytes.nn.Linear4bit.__name__)"
    told = python("from pcclab import encoders, training; training.fit", LOOK, quantised, LOOK, used, cwd=checkout)
    assert told == ["False", "True", "Linear4bit"]


def test_what_is_imported_already_or_is_not_there_stays_as_it_is(checkout: Path) -> None:
    told = python(
        "import sys, json, importlib.util",
        "from pcclab.lazily import imported_at_first_use as later",
        "later('json'); later('no_such_package'); later('colorsys')",
        "print(type(sys.modules['json']).__name__, 'no_such_package' in sys.modules)",
        "import colorsys; print(type(colorsys).__name__, hasattr(colorsys, '__warningregistry__'))",
        "print(type(colorsys).__name__); colorsys.rgb_to_hsv; print(type(colorsys).__name__)",
        cwd=checkout,
    )
    assert told == ["module", "False", "_Unused", "False", "_Unused", "module"]


def test_a_part_of_an_unused_package_brings_the_whole(checkout: Path) -> None:
    told = python(
        "from pcclab.lazily import imported_at_first_use as later",
        "later('wsgiref'); later('email'); import email, wsgiref.util",
        "print(type(email).__name__, wsgiref.util.__name__)",
        "from email import message_from_string; print(type(email).__name__)",
        cwd=checkout,
    )
    assert told == ["_Unused", "wsgiref.util", "module"]


def test_papermill_runs_without_the_grammar(checkout: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "pcclab.lean_papermill", "--version"]
    lean = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    assert "rfc3987_syntax.syntax_helpers" not in lean.stderr and "nbformat" in lean.stderr
    assert lean.stdout.startswith(("papermill", "2"))


def test_the_collector_rests_while_parts_load_and_before_the_end_alone(checkout: Path) -> None:
    told = python(
        "import gc, pcclab, atexit",
        "pcclab.ceiling; print(gc.isenabled(), gc.get_freeze_count())",
        "gc.disable(); pcclab.data; print(gc.isenabled())",
        "gc.enable()",
        "try: pcclab.missing",
        "except AttributeError: print(gc.isenabled())",
        "import weakref",
        "class Node: pass",
        "one = Node(); one.itself = one; gone = weakref.ref(one); del one; gc.collect(); print(gone() is None)",
        "atexit._run_exitfuncs(); print(gc.get_freeze_count() > 1000)",
        cwd=checkout,
    )
    assert told == ["True", "0", "False", "True", "True", "True"]
