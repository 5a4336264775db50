"""`python -m pcclab.lean_papermill`: papermill's command, without a second of its start that no notebook needs.

papermill reads notebooks with nbformat, which imports jsonschema, which prepares a grammar of internationalised web
addresses for a format that no notebook's schema holds. jsonschema does without where that package is not installed.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # as Python marks what cannot be imported
    from papermill.cli import papermill

    papermill(prog_name="papermill")
