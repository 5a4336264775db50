"""The papermill engine `pcclab`: parameters held before a kernel starts, sockets for ports, honest states of cells.

`papermill --engine pcclab notebooks/03_stage2_pcc_tuning.ipynb out.ipynb -f parameters/03_stage2_pcc_tuning/real.yaml`;
plain papermill runs the same notebooks. papermill loads this module at every start, with or without the engine, so that
it must import little, and nothing of papermill: see `pcclab.execution` for what runs the cells.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbformat import NotebookNode

TAGS = {"parameters", "injected-parameters"}
_START = re.compile(r"""pcclab\.start\(\s*["']([^"']+)["']""")


class Engine:
    """What papermill calls: entry point `pcclab` of the group `papermill.engine`."""

    @staticmethod
    def execute_notebook(nb: NotebookNode, kernel_name: str, **options: Any) -> NotebookNode:
        """Check the parameters, then run the cells.

        Raises: `pcclab.execution.BadParameters`, a ValueError, before anything is started or written; what papermill
            raises for failing cells; DeadKernelError where the kernel dies.
        """
        from pcclab import execution

        try:
            check(nb, origin=str(options.get("input_path") or "the notebook"))
        except ValueError as error:
            raise execution.BadParameters(str(error)) from None
        return execution.CellEngine.execute_notebook(nb, kernel_name, **options)

    @staticmethod
    def nb_kernel_name(nb: NotebookNode, name: str | None = None) -> str:
        """The kernel's name as papermill finds it."""
        from papermill.utils import nb_kernel_name

        return str(nb_kernel_name(nb, name))

    @staticmethod
    def nb_language(nb: NotebookNode, language: str | None = None) -> str:
        """The language as papermill finds it."""
        from papermill.utils import nb_language

        return str(nb_language(nb, language))


def check(nb: NotebookNode, *, origin: str) -> None:
    """Hold a notebook's parameters, injected ones included, against its model.

    A notebook that never calls `pcclab.start("NAME", ...)` has no model and passes, so that the engine runs any one.

    Args:
        nb: the notebook as it would be run.
        origin: what the error says the values came from.

    Raises: ValueError with one line for each fault, as `pcclab.parameters.validate`.
    """
    from pcclab.parameters import validate

    sources = [cell.source for cell in nb.cells if cell.cell_type == "code"]
    named = next((found[1] for source in sources if (found := _START.search(source))), None)
    if named is not None:
        validate(named, assigned(nb, origin=origin), origin=origin)


def assigned(nb: NotebookNode, *, origin: str) -> dict[str, Any]:
    """The values that a notebook's tagged cells assign, later ones over earlier ones; nothing is executed.

    Raises: ValueError for a line that is no `name: type = literal`, which could mean anything once it is run.
    """
    values: dict[str, Any] = {}
    for cell in nb.cells:
        if cell.cell_type != "code" or not TAGS & set(cell.metadata.get("tags", ())):
            continue
        try:
            lines = ast.parse(cell.source).body
        except SyntaxError as error:
            raise ValueError(f"{origin}: the parameters cell is not Python ({error}): write `name = literal`") from None
        for line in lines:
            targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
            try:
                if len(targets) != 1 or not isinstance(targets[0], ast.Name):
                    raise ValueError
                values[targets[0].id] = ast.literal_eval(line.value)
            except (ValueError, AttributeError):
                raise ValueError(
                    f"{origin}: the parameters cell holds {ast.unparse(line)!r}: write `name = literal`, such as "
                    "`seed: int = 0`"
                ) from None
    return values
