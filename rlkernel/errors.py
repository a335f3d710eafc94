"""Errors that the user can fix, and what a command makes of them."""

from __future__ import annotations

import atexit
import dataclasses
import errno
import gc
import os
import sys
from types import TracebackType
from typing import Any

from rlkernel.blame import bug_of_a_method
from rlkernel.leaving import leave
from rlkernel.starting import open_streams

GOES_ON = 75
"""Exit status of a command that stopped at its limit, or lacks answers (EX_TEMPFAIL of sysexits.h): the same command goes on."""


BROKEN_PIPE = 141
"""Exit status of a command whose output nobody reads any more (128 + SIGPIPE)."""
FULL = (errno.ENOSPC, errno.EDQUOT)
"""What an operating system answers where a disk, or a user's share of it, is full."""
_LACKING = {
    errno.EFBIG: ("a file is larger than this shell allows", "raise `ulimit -f`"),
    errno.EACCES: ("permission is denied", "choose another directory, or change its permissions"),
    errno.EROFS: ("the file system takes no writes", "choose another directory, or mount it writable"),
    errno.EMFILE: ("too many files are open", "raise `ulimit -n`"),
    errno.ENFILE: ("too many files are open on this machine", "raise the kernel's fs.file-max"),
    errno.EAGAIN: ("no further process may be started", "raise `ulimit -u`, or the container's limit of processes"),
}
"""What else an operating system answers where a machine or its limits lack something: what is wrong, and the fix."""


class UsageError(ValueError):
    """One line that names what is wrong and the fix. Commands print it without a traceback and exit with status 2."""


class BrokenReference(ValueError):
    """A reference that cannot be used. The message is one line: which file, what is wrong, how to mend it."""


class EvaluatorFailed(RuntimeError):
    """A trusted process of the evaluator ended: our failure, or the reference's, never a candidate's."""


class EvaluatorEnded(RuntimeError):
    """The evaluator as a whole has ended, e.g. was killed. No problem is at fault, and a new one can go on."""


class EndedElsewhere(RuntimeError):
    """The end of another process of a command. The text, from there, is all that the command prints; status: its exit status."""

    def __init__(self, told: str, status: int) -> None:
        super().__init__(told)
        self.status = status


def first_line(error: BaseException) -> str:
    """The first line of an error's text; empty where it has no text.

    >>> first_line(ValueError(" too long\\nby far")), first_line(AssertionError())
    ('too long', '')
    """
    return (str(error).strip().splitlines() or [""])[0]


def one_line(error: BaseException) -> str:
    """The type of an error and at most 200 characters of its first line.

    >>> one_line(ValueError("too long\\nby far")), one_line(MemoryError())
    ('ValueError: too long', 'MemoryError')
    """
    return ": ".join(filter(None, (type(error).__name__, first_line(error)[:200])))


def usage_error(error: BaseException) -> UsageError | None:
    """The `UsageError` in an exception or in the groups that task groups wrap around it, if that is all there is.

    A broken reference is one: the user's file is named in its text. So is a full disk, and an evaluator that is gone.
    """
    if isinstance(error, UsageError):
        return error
    if isinstance(error, BrokenReference):
        return UsageError(str(error))
    if isinstance(error, EvaluatorFailed | EvaluatorEnded):
        why = " ".join(str(error).split())
        return UsageError(f"the evaluator is gone ({why}): give the same command, which goes on")
    if isinstance(error, OSError) and error.errno != errno.EAGAIN:  # which sockets answer, too
        return lacking(error.errno, "" if error.filename is None else str(error.filename))
    if isinstance(error, BaseExceptionGroup):
        found = [usage_error(inner) for inner in error.exceptions]
        return found[0] if found and all(found) else None
    return None


def disk_full(path: str = "") -> UsageError:
    """The error for a disk that is full. path: what could not be written, where that is known."""
    what = f" while {path} was written" if path else ""
    return UsageError(f"the disk is full{what}: free some space, then give the same command, which goes on")


def lacking(number: int | None, path: str = "") -> UsageError | None:
    """The error for what the machine lacks, by the operating system's error number; None for a number that tells of something
    else. path: what was being written or started, where that is known.

    >>> lacking(errno.EMFILE)
    UsageError('too many files are open: raise `ulimit -n`, then give the same command, which goes on')
    >>> lacking(errno.ENAMETOOLONG)
    """
    if number in FULL:
        return disk_full(path)
    if number not in _LACKING:
        return None
    what, fix = _LACKING[number]
    return UsageError(f"{what}{f' ({path})' if path else ''}: {fix}, then give the same command, which goes on")


def exit_status(call: Any) -> int:
    """The exit status of a command that is `call`: what it returns (None: 0), 1 after a bug in a method of the user's own
    (`rlkernel.blame`), 2 after one line about what the user can fix, 130 when it was interrupted and 141 when nobody reads what
    it prints (`| head`), as shells have them. The process ends here where a call still runs that was given up (`leave`)."""
    return leave(_status(call))


def _status(call: Any) -> int:
    # The interpreter's last collection would look at all that was ever imported: 4 s where TRL is among it.
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    open_streams()
    try:
        if sys.flags.optimize > 1:
            raise UsageError("PYTHONOPTIMIZE=2 (python -OO) takes docstrings away, which --help and Transformers read: unset it")
        returned = int(call() or 0)
        sys.stdout.flush()
        return returned
    except BrokenPipeError:
        return _broken_pipe()
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):  # which rich makes an end of its own of
            raise
        return _broken_pipe()
    except (Exception, BaseExceptionGroup, KeyboardInterrupt) as error:
        status = _told(error)
        if status is None:
            raise
        return status


def _broken_pipe() -> int:
    """The exit status of a command whose output nobody reads."""
    # What is left in the buffer is flushed at the interpreter's end, which would tell of the pipe once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def tell_usage_errors() -> None:
    """For packages whose files are configuration: what is wrong in them ends the process as in `exit_status`, with one line.

    That is a `UsageError` during their import, or a call at the top of a file that does not fit, e.g. a misspelt field.
    """

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        status = _told(misfit_call(error) or error)
        if status is not None:
            sys.exit(status)
        sys.__excepthook__(kind, error, trace)

    sys.excepthook = hook


def misfit_call(error: BaseException) -> UsageError | None:
    """Where a call at the top of a file failed because of its arguments, with Python's own words; None for other errors."""
    trace, at = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != dataclasses.__file__:  # `replace` is where it happens, not what is wrong
            at = trace
        trace = trace.tb_next
    if not isinstance(error, TypeError) or at is None or at.tb_frame.f_code.co_name != "<module>":
        return None
    return UsageError(
        f"{os.path.relpath(at.tb_frame.f_code.co_filename)}, line {at.tb_lineno}: this call does not fit: {first_line(error)}"
    )


def _told(error: BaseException) -> int | None:
    """The exit status of what one line on standard error explains, or a method's part of the traceback; None for what wants all
    of it."""
    if isinstance(error, KeyboardInterrupt):
        print(": ".join(["interrupted", *map(str, error.args)]), file=sys.stderr)
        return 130
    known = explained(error)
    if known is None:
        return None
    told, status = known
    print(f"error: {told}", file=sys.stderr)
    return status


def explained(error: BaseException) -> tuple[str, int] | None:
    """What a command prints in the place of a traceback, and its exit status; None for what wants all of the traceback. Of
    several errors that task groups have put together, the first."""
    if isinstance(error, BaseExceptionGroup):
        found = [explained(inner) for inner in error.exceptions]
        return found[0] if all(found) else None
    if isinstance(error, EndedElsewhere):
        return str(error), error.status
    usage = usage_error(error)
    if usage is not None:
        return str(usage), 2
    bug = bug_of_a_method(error)
    return None if bug is None else (bug, 1)
