"""Whose bug an exception is: one that a method of the user's own raised is told with the way inside of that method alone.

A method is a frozen dataclass outside of this package that this package calls: an estimator, a correction, a reward or an
environment.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

OURS = str(Path(__file__).parent) + os.sep
LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
"""Where Python's modules and installed packages are. An installed copy of this package is ours all the same."""


def bug_of_a_method(error: BaseException) -> str | None:
    """Text for the first exception of `error`, which task groups may have wrapped: the method, what it raised and where, then the
    traceback from the method on, without the lines of libraries. None unless methods raised all exceptions in it."""
    told = [_told(leaf) for leaf in _leaves(error)]
    return told[0] if all(told) else None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _told(error: BaseException) -> str | None:
    trace = _from_method(error.__traceback__) if isinstance(error, Exception) else None
    if trace is None:
        return None
    owner = [type(frame.f_locals["self"]).__name__ for frame, _ in traceback.walk_tb(trace) if _is_method(frame)][-1]
    frames = [frame for frame in traceback.extract_tb(trace) if _is_ours(frame.filename) or not _is_library(frame.filename)]
    (raised,) = traceback.format_exception_only(error)[-1:]
    at = f"{_short(frames[-1].filename)}:{frames[-1].lineno}"
    return f"{owner} raised {raised.strip()} ({at})\n{''.join(traceback.format_list(frames))}".rstrip()


def _from_method(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins where this package calls a method; None where it calls none."""
    called_by_us = False
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if _is_ours(name):
            called_by_us = True
        elif called_by_us and _is_method(trace.tb_frame):
            return trace
        elif not _is_library(name):
            called_by_us = False
        trace = trace.tb_next
    return None


def _is_method(frame: FrameType) -> bool:
    """Whether the frame is of a function of a frozen dataclass outside of this package."""
    if _is_ours(frame.f_code.co_filename) or _is_library(frame.f_code.co_filename):
        return False
    parameters = getattr(frame.f_locals.get("self"), "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


def _is_ours(file: str) -> bool:
    return file.startswith(OURS)


def _is_library(file: str) -> bool:
    return file.startswith(("<", *LIBRARIES))


def _short(file: str) -> str:
    """The path from the working directory where the file is below it, else the whole path."""
    here = os.getcwd() + os.sep
    return file.removeprefix(here)
