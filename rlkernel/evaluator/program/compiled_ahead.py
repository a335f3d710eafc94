"""What host code asks of kernels before a forward is at its end: `kernel.warmup(...)`, whose handle tells registers and shared
memory, and `kernel.best_config`, of which the next launch takes a number.

A trace compiles nothing. It ends with `Asked`; the pool has that one launch compiled, and the candidate is traced again with
`KernelFacts`. So a grid that is chosen by occupancy is the one that a plain run would choose. An autotuner whose choice is read
has the configuration that the model of time puts first from then on, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.program.variant import Specs

MOST_ASKED = 16
"""How many kernels one candidate may ask for, at all its sizes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One kernel with the arguments that it is to be compiled for."""

    key: str
    """What tells it from the candidate's other kernels; the candidate's process makes it, and is given it back."""
    program: Program
    """A Program of that one launch."""
    specs: Specs
    offered: tuple[int, ...] = ()
    """The configurations of the Program's launch by their places in the autotuner's list; none where none is to be chosen."""

    @property
    def chooses(self) -> bool:
        """Whether the question is which configuration is taken."""
        return any(len(launch.configs) > 1 for launch in self.program.launches)


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What the handle of a compiled kernel tells, or which configuration of an autotuned one is taken."""

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
    chosen: int = 0
    """The configuration, by its place in the autotuner's list."""
