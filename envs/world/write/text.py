"""What a stage is written into: its text, piece by piece, and the places where a mistake can go.

A writer asks `Page.pick(slot, right, ...)` for every piece that people get wrong. A `Slip` of the draft at that slot puts another
text there. So a mistake is a change of the generator's choice, never a search in finished text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Slip:
    """A mistake in a stage. `becomes` stands at the `at`-th use of the slot, with `{right}` for the right text."""

    stage: int
    slot: str
    becomes: str
    at: int = 0
    mistake: str = ""
    """The mistake's name in `envs.world.mistakes.MISTAKES`."""


@dataclass(frozen=True, slots=True)
class Place:
    """A use of a slot, with the right text and what else mistakes may name there."""

    stage: int
    slot: str
    at: int
    right: str
    context: Mapping[str, str]


@dataclass
class Page:
    """The places and slips of one stage while it is written."""

    stage: int
    slips: tuple[Slip, ...] = ()
    places: list[Place] = field(default_factory=list)
    _uses: dict[str, int] = field(default_factory=dict)

    def pick(self, slot: str, right: str, **context: object) -> str:
        """The right text, or a slip's."""
        at = self._uses.get(slot, 0)
        self._uses[slot] = at + 1
        named = {key: str(value) for key, value in context.items()}
        self.places.append(Place(self.stage, slot, at, right, named))
        for slip in self.slips:
            if (slip.stage, slip.slot, slip.at) == (self.stage, slot, at):
                return slip.becomes.format(right=right, **named)
        return right


@dataclass(frozen=True, slots=True)
class Written:
    """The kernels of a stage and the lines of `forward` that launch them, which end with the result in `y`."""

    kernels: tuple[str, ...]
    launch: tuple[str, ...]


def kernel_text(page: Page, name: str, parameters: list[str], constants: list[str], body: list[str]) -> str:
    """The text of a kernel. Empty lines of the body, which mistakes leave, are dropped."""
    listed = [page.pick("constexpr", f"{constant}: tl.constexpr", name=constant) for constant in constants]
    lines = [f"    {line}" for line in body if line.strip()]
    return "\n".join(["@triton.jit", f"def {name}({', '.join([*parameters, *listed])}):", *lines]) + "\n"
