"""The shapes in the signatures are true: with every call checked, right ones pass and a wrong one does not."""

from __future__ import annotations

import subprocess
import sys

CHECKED = """
import jaxtyping
parts = ["pcclab.losses", "pcclab.encoders", "pcclab.evaluation.correlation"]
with jaxtyping.install_import_hook(parts, "beartype.beartype"):
    from pcclab import encoders, losses
    from pcclab.evaluation import correlation
import numpy as np, torch
rows = torch.rand(3, 4, 5)
losses.info_nce(*rows), losses.info_nce(*rows[:2]), losses.pearson(rows[0, 0], rows[1, 0])
for pooling in encoders.POOLINGS:
    encoder = encoders.load("tiny", pooling=pooling)
    vectors = encoder.encode(["one text", "another", "a third one"], normalize=True)
    correlation.spearman(correlation.cosine(vectors, vectors[::-1]), np.array([1.0, 2.0, 3.0]))
for wrong in (lambda: losses.info_nce(rows[0], rows[1, :, :4]), lambda: losses.pearson(rows[0, 0], rows[0])):
    try:
        wrong()
    except jaxtyping.TypeCheckError:
        continue
    raise SystemExit("a wrong shape passed")
print("checked")
"""


def test_shapes_in_signatures_hold_on_every_call():
    done = subprocess.run([sys.executable, "-c", CHECKED], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "checked", done.stderr[-2000:]
