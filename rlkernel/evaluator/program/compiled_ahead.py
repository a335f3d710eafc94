"""Kernels that host code compiles ahead of a launch: `kernel.warmup(...)`, whose handle tells registers and shared memory.

A trace compiles nothing. It ends with `Asked`; the pool has that one launch compiled, and the candidate is traced again with
`KernelFacts`. So a grid that is chosen by occupancy is the one that a plain run would choose.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.program.variant import Specs

MOST_ASKED = 16
"""How many kernels one candidate may compile ahead, at all its sizes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One kernel with the arguments that it is to be compiled for."""

    key: str
    """What tells it from the candidate's other kernels; the candidate's process makes it, and is given it back."""
    program: Program
    """A Program of that one launch."""
    specs: Specs


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What the handle of a compiled kernel tells."""

    key: str
    """That of the question."""
    registers: int
    """Per thread."""
    spills: int
    """Bytes of stack per thread."""
    shared_bytes: int
    """Per program."""
    num_warps: int
    num_ctas: int
