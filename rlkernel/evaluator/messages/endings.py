"""Answers in place of the one that was asked for, from any process."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.types import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """An answer that may be its process's last one."""

    lost: bool = False
    """Whether the process is of no use any more."""


@dataclass(frozen=True, slots=True)
class Failed(Ending):
    """What became of the candidate; of a process that is trusted, `Status.CRASH` also tells of its own failure."""

    status: Status
    detail: str
    """One line, shown to models and people."""
    at_full: bool = False
    """Whether it was found at full shape, by whoever also looks at other sizes."""


@dataclass(frozen=True, slots=True)
class Unable(Ending):
    """What the machine lacked for the work. The candidate has no part in it."""

    number: int
    """The operating system's error number."""
    path: str
    """The folder in which the work was done."""


@dataclass(frozen=True, slots=True)
class Broken(Ending):
    """The reference cannot be used."""

    why: str
    """One line that names the problem."""
