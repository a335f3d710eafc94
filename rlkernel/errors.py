"""Errors that the user can fix."""

from __future__ import annotations

from rlkernel.reference import BrokenReference


class UsageError(ValueError):
    """One line that names what is wrong and the fix. Commands print it without a traceback and exit with status 2."""


def one_line(error: BaseException) -> str:
    """Type and first line of an error, bounded."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"


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
