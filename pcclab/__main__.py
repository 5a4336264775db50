"""`python -m pcclab` is the same as the command `pcclab`."""

from __future__ import annotations

from pcclab.cli import main

if __name__ == "__main__":
    main()
