"""Errors that the user can fix, and what a command makes of them."""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
import sys
from types import TracebackType
from typing import Any


class UsageError(ValueError):
    """One line that names what is wrong and the fix. Commands print it without a traceback and exit with status 2."""


class BrokenReference(ValueError):
    """A reference that cannot be used. The message is one line: which file, what is wrong, how to mend it."""


class EvaluatorFailed(RuntimeError):
    """A trusted process of the evaluator ended: our failure, or the reference's, never a candidate's."""


def first_line(error: BaseException) -> str:
    """Of an error's text; empty where it has none.

    >>> first_line(ValueError(" too long\\nby far")), first_line(AssertionError())
    ('too long', '')
    """
    return (str(error).strip().splitlines() or [""])[0]


def one_line(error: BaseException) -> str:
    """Type and first line of an error, bounded.

    >>> one_line(ValueError("too long\\nby far")), one_line(AssertionError())
    ('ValueError: too long', 'AssertionError: ')
    """
    return f"{type(error).__name__}: {first_line(error)[:200]}"


def usage_error(error: BaseException) -> UsageError | None:
    """The `UsageError` in an exception or in the groups that task groups wrap around it, if that is all there is.

    A broken reference is one: the user's file is named in its text.
    """
    if isinstance(error, UsageError):
        return error
    if isinstance(error, BrokenReference):
        return UsageError(str(error))
    if isinstance(error, BaseExceptionGroup):
        found = [usage_error(inner) for inner in error.exceptions]
        return found[0] if found and all(found) else None
    return None


def exit_status(call: Any) -> int:
    """Of a command: its own (None: 0), 2 with one line for what the user can fix, 130 when interrupted, as shells have it."""
    try:
        return int(call() or 0)
    except (Exception, BaseExceptionGroup, KeyboardInterrupt) as error:
        status = _told(error)
        if status is None:
            raise
        return status


def tell_usage_errors() -> None:
    """For packages whose files are configuration: a `UsageError` during their import, or a field that does not exist, ends the
    process as in `exit_status`."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        status = _told(misspelt_field(error) or error)
        if status is not None:
            sys.exit(status)
        sys.__excepthook__(kind, error, trace)

    sys.excepthook = hook


def misspelt_field(error: BaseException) -> UsageError | None:
    """Of a dataclass made outside of rlkernel with a field that it does not have: where, which, and which one may be meant."""
    found = re.match(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", str(error))
    trace, at = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != dataclasses.__file__:  # `replace` is where it happens, not what is wrong
            at = trace
        trace = trace.tb_next
    if found is None or not isinstance(error, TypeError) or at is None:
        return None
    name, unknown = found.groups()
    home = at.tb_frame.f_globals
    cls = home.get(name) or getattr(sys.modules.get("rlkernel.config"), name, None)
    if not dataclasses.is_dataclass(cls) or str(home.get("__name__")).startswith("rlkernel."):
        return None
    names = [field.name for field in dataclasses.fields(cls)]
    close = difflib.get_close_matches(unknown, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(names)}"
    where = os.path.relpath(at.tb_frame.f_code.co_filename)
    return UsageError(f"{where}, line {at.tb_lineno}: {name} has no field {unknown!r}: {hint}")


def _told(error: BaseException) -> int | None:
    """The exit status of what one line on standard error explains; None for what wants a traceback."""
    if isinstance(error, KeyboardInterrupt):
        print(": ".join(["interrupted", *map(str, error.args)]), file=sys.stderr)
        return 130
    usage = usage_error(error)
    if usage is None:
        return None
    print(f"error: {usage}", file=sys.stderr)
    return 2
