"""The statement of a kernel at which something was raised, for the words of a verdict."""

from __future__ import annotations

import traceback

from rlkernel.evaluator.program.kernel_source import FILES

MOST_SHOWN = 120
"""Characters of a statement that a verdict shows."""


def at_statement(error: BaseException) -> str:
    """Where in a kernel an error was raised, such as ", at `x = tl.load(p + i)`"; nothing where it was raised elsewhere."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.line for frame in frames if frame.filename.startswith(FILES) and frame.line]
    if not lines:
        return ""
    line = lines[-1]
    return f", at `{line if len(line) <= MOST_SHOWN else line[:MOST_SHOWN] + '...'}`"
