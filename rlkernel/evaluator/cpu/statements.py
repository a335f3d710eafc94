"""The statement of a kernel that runs, and that at which something was raised, for the words of a verdict."""

from __future__ import annotations

import sys
import traceback
from types import FrameType

from rlkernel.evaluator.program.kernel_source import FILES

MOST_SHOWN = 120
"""Characters of a statement that a verdict shows."""


def running() -> FrameType | None:
    """The innermost frame of a kernel, or of a function that it calls, on the way to who asks; None outside of kernels."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith(FILES):
        frame = frame.f_back
    return frame


def at_statement(error: BaseException) -> str:
    """Where in a kernel an error was raised, such as ", at `x = tl.load(p + i)`"; nothing where it was raised elsewhere."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.line for frame in frames if frame.filename.startswith(FILES) and frame.line]
    if not lines:
        return ""
    line = lines[-1]
    return f", at `{line if len(line) <= MOST_SHOWN else line[:MOST_SHOWN] + '...'}`"
