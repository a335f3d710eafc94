"""One size of a problem: the arguments as a candidate is given them, and what its trace there leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlkernel.evaluator.program.schema import MAX_CHOICES, MAX_KERNELS, Program, TensorSpec, specs_of


@dataclass(frozen=True, slots=True)
class Specs:
    """The tensors among a problem's arguments at one size, in order of appearance."""

    init_inputs: tuple[TensorSpec, ...]
    inputs: tuple[TensorSpec, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """A problem's arguments at one size, with tensors as specifications (`judging.references.arguments.spec`)."""

    init_args: Any
    """The constructor's arguments: [args, kwargs]."""
    inputs: Any
    """The arguments of `forward`, a list."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Module constants that are smaller at this size: name -> [full value, small value], see `rlkernel.reference_text.shrink`."""

    replaced: tuple[str, ...] = ()
    """Attributes that the reference's forward replaces for its next call, see `program.replaced`."""

    @property
    def specs(self) -> Specs:
        """The tensors among the arguments."""
        return Specs(specs_of(self.init_args), specs_of(self.inputs))


@dataclass(frozen=True, slots=True)
class KeptConfigs:
    """The configurations that host code keeps of one launch in forward. Raises ValueError for such as there cannot be."""

    function: int
    """The kernel's place in `Program.functions`."""
    configs: int
    """How many configurations there were to choose from."""
    kept: tuple[int, ...]
    """The places of those that are kept."""

    def __post_init__(self) -> None:
        known = 0 <= self.function < MAX_KERNELS and 1 <= self.configs <= MAX_CHOICES
        if not known or not all(0 <= place < self.configs for place in self.kept):
            raise ValueError("configurations that there are not")


@dataclass(frozen=True, slots=True)
class Kept:
    """The configurations that are kept at the size that is timed: a row for each launch in forward, in order. There are no rows
    where no launch has several configurations."""

    usual: tuple[KeptConfigs, ...] = ()
    flipped: tuple[KeptConfigs, ...] = ()
    """In the other of train and eval mode."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A candidate at one size."""

    program: Program
    other: Program | None
    """The candidate in the other of train and eval mode, where it does other work there."""

    @property
    def calls_before(self) -> tuple[int, int]:
        """How often a module is called before it is judged: in its usual mode, and after that in the other one."""
        usual = len(self.program.prepare_inputs)
        return usual, 0 if self.other is None else len(self.other.prepare_inputs) - usual
