"""Many runs brought together: as tables (Parquet, CSV), as text (Markdown) and as one page to send (HTML).

No run is dropped in silence: one that is not finished, is damaged, or is of another version stands in the table of runs
with its state and the reason, and its figures stay out of the means.
"""

from __future__ import annotations

from pcclab.collecting.collection import Collection, collect, of_entries
from pcclab.collecting.entries import Entry, of_notebook, of_run
from pcclab.collecting.page import html
from pcclab.collecting.page import write as write_page
from pcclab.collecting.text import markdown, plain, states, write

__all__ = [
    "Collection",
    "Entry",
    "collect",
    "html",
    "markdown",
    "of_entries",
    "of_notebook",
    "of_run",
    "plain",
    "states",
    "write",
    "write_page",
]
