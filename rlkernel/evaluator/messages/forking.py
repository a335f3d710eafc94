"""Between the pool and its fork server. Both are trusted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fork:
    """Pool to fork server: a child is wanted. Its end of a socket pair comes with this message."""

    number: int
    """The child's name between the two."""
    kind: str
    """A key of `processes.jobs.JOBS`."""
    cpu_seconds: int
    memory_bytes: int
    """Address space on top of the libraries'."""
    compiler: bool = False
    """Whether it will import torch's compiler, whose output its text is like."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Pool to fork server: end a child and all that it has started."""

    number: int


@dataclass(frozen=True, slots=True)
class Ready:
    """Fork server to pool: it can fork from now on."""

    pid: int


@dataclass(frozen=True, slots=True)
class Forked:
    """Fork server to pool: a child runs."""

    number: int
    pid: int


@dataclass(frozen=True, slots=True)
class Exited:
    """Fork server to pool: a child has ended."""

    number: int
    status: int
    """As `os.waitpid` gives it."""
    processor_seconds: float
    """The processor time of the child, and of what it has started and waited for."""
