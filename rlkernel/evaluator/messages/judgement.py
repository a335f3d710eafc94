"""What the oracle and a GPU's runner say of a reference: what is allowed, and what is done to inputs and weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What is allowed of one output."""

    norm: float
    """Error relative to the norm of the ordinary values."""
    element: float
    """Error of one element, relative to |element| + root mean square. Of whole numbers: the share that may be off by one."""
    huge: float = math.inf
    """Magnitude above which a value must be met on its own."""
    shrink: float = 0.0
    """Share by which all ordinary values may be too small together, before the other bounds hold: operands that are cut off err
    alike."""

    def times(self, factor: float) -> Tolerance:
        """Return bounds that are so many times as wide."""
        return Tolerance(factor * self.norm, factor * self.element, self.huge, self.shrink)


@dataclass(frozen=True, slots=True)
class Reads:
    """The bytes of what a reference needs to the last element at full size; 0 of what it does not."""

    inputs: tuple[float, ...] = ()
    """The bytes of each tensor among the arguments of forward."""
    parameters: dict[str, float] = field(default_factory=dict)
    made: bool = False
    """Whether what a candidate's kernels write for later ones is needed, too: all inputs are, and nothing hides a part of a
    result by its place."""


@dataclass(frozen=True, slots=True)
class KnownInput:
    """The whole numbers in one of forward's tensors at full size, as the problem's author draws them."""

    place: int
    """Its place among the tensors of forward's arguments."""
    values: tuple[int, ...]
    """In the order of memory, in which they follow one another."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a kernel takes at least whose loops end where the inputs' whole numbers say, see `judging.inputs.told`."""

    floor_us: float
    least_share: float
    """The share of the operations of the reference's products."""


class Unread(StrEnum):
    """What is never read in part at full shape, and is needed to the last element."""

    NOTHING = ""
    INPUT = "an input"
    PARAMETER = "a parameter"
    MADE = "what other kernels wrote"


NOTHING = Reads()
"""Where nothing is claimed."""


class Stress(StrEnum):
    """What is done to the floating-point inputs of a round."""

    NONE = ""
    SCALED = "scaled"
    """They are multiplied by 8."""
    LESS = "less"
    """They are multiplied by 3, where 8 is not borne: scores of attention are 9 times as large then, and not 64 times."""
    LEAST = "least"
    """They are multiplied by 1.5, where 3 is not borne: a product of two inputs that is as long as it is drawn has scores as
    large as one of five times the length at full shape."""
    SHIFTED = "shifted"
    """Besides, inputs that are never negative, such as those of `torch.rand`, are centred, so that they have both signs. Those
    that lie about zero, such as those of `torch.randn`, are moved off it by half of their size, so that a mean is missed."""
    UNEVEN = "uneven"
    """Besides, the numbers of an input differ in size from place to place, so that a part of a row does not stand for it."""
    EXTREME = "extreme"
    """Besides, a few rows of an input are tiny, and a few lie wholly below zero."""
    VARIED = "varied"
    """Inputs that hold one number get several, as they do in all of these, and nothing else is done."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows of one input that lie at the edge of what a formula bears, see `judging.inputs.edges`."""

    place: int
    """Which of the tensors among the arguments of forward it is."""
    axis: int
    """Along which axis these rows are counted."""
    low: bool
    """Whether a few of them lie wholly below zero."""
    tiny: bool = True
    """Whether a few of them are tiny."""
    small: bool = False
    """Whether these are only small, because the reference has no number of its own that tinier ones could show."""


@dataclass(frozen=True, slots=True)
class Places:
    """What is done to single tensors among the arguments of forward where these are under stress, by their places."""

    kept: tuple[int, ...] = ()
    """Inputs of zeros that the reference does not read, which stay zeros."""
    holed: tuple[int, ...] = ()
    """Masks without a hole, which get some."""
    drawn: tuple[int, ...] = ()
    """Inputs whose numbers are drawn one by one, which may be uneven."""
    turned: tuple[int, ...] = ()
    """Inputs that are the same in each draw, whose elements are turned around along an axis."""
    moved: tuple[int, ...] = ()
    """Consecutive places that are the same in each draw, which lie one farther."""
    apart: tuple[int, ...] = ()
    """Copies of an earlier input, whose slices stand elsewhere."""
    rows: tuple[int, ...] = ()
    """Inputs of whole numbers with rows that are copies of each other, which are moved on in themselves."""
    edges: tuple[Edge, ...] = ()
    """Rows of inputs that are uneven which are tiny or below zero, for one input at most once."""


NOWHERE = Places()


@dataclass(frozen=True, slots=True)
class NumbersOfArguments:
    """Whole numbers of forward's arguments stand among its inputs, see `judging.inputs.planting`."""


@dataclass(frozen=True, slots=True)
class Plant:
    """Numbers that are put into some elements of one input, or of several, see `judging.inputs.unshown`."""

    place: int
    """Which of the tensors among the arguments of forward it is."""
    values: tuple[float, ...]
    along: tuple[int, ...] = ()
    """The axes along which all elements get the same: whole rows along the last one, or all of the input."""
    also: tuple[int, ...] = ()
    """The other tensors that get them, where they are of one shape at the same places."""
    beside: bool = False
    """Whether zeros stay, and the diagonal: those of a triangle, on which a kernel may rely."""
    opposed: bool = False
    """Whether the other tensors get the negative ones."""
    toward: str = ""
    """The parameter that is shifted besides, see `judging.inputs.agreeing`."""


@dataclass(frozen=True, slots=True)
class Met:
    """Numbers of one input that are those of another one, see `judging.inputs.met`."""

    place: int
    """Which of the tensors among the arguments of forward it is."""
    other: int
    """That whose numbers it gets."""
    anywhere: bool
    """Whether it gets any of them, as what is looked up between edges, and not those that lie where it gets them."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """An input some of whose numbers repeat others, see `judging.inputs.equals`."""

    place: int
    """Which of the tensors among the arguments of forward it is."""
    axis: int | None
    """Along which its indices repeat a neighbour; None where its numbers are limited."""


@dataclass(frozen=True, slots=True)
class Pressed:
    """An input whose numbers are neighbours in the order in which they are, see `judging.inputs.pressed`."""

    place: int
    """Which of the tensors among the arguments of forward it is."""
    axis: int | None
    """Along which they are; None for all of them, of which some are equal then."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """An input in some of whose rows labels name the largest number, see `judging.inputs.labels`."""

    place: int
    """Which of the tensors among the arguments of forward it is."""
    labels: int
    """That which holds the labels."""
    axis: int
    """Along which they name a number."""


@dataclass(frozen=True, slots=True)
class Resized:
    """One input, multiplied by a power of two, see `judging.inputs.little`."""

    place: int
    """Which of the tensors among the arguments of forward it is."""
    factor: float
    numbers: tuple[int, ...] = ()
    """Inputs of a single number that are others besides."""


@dataclass(frozen=True, slots=True)
class Emptied:
    """An input of indices of which some are never named, see `judging.inputs.emptied`."""

    place: int
    """Which of the tensors among the arguments of forward it is."""


@dataclass(frozen=True, slots=True)
class Enlarged:
    """An input of whole numbers that are larger, see `judging.inputs.enlarged`."""

    place: int
    """Which of the tensors among the arguments of forward it is."""
    factor: int


@dataclass(frozen=True, slots=True)
class OneSided:
    """Numbers among inputs and weights that bfloat16 rounds to one side, see `judging.inputs.one_sided`."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One input or parameter that is moved, see `judging.inputs.moved`."""

    place: int | None
    """Which of the tensors among the arguments of forward it is; None where it is a parameter."""
    name: str = ""
    """That of the parameter."""
    scale: float = 1.0
    shift: float = 0.0
    """What is added behind the scale."""
    part: int = 0
    """Which of its `parts` along an axis is moved."""
    parts: int = 1
    axis: int = 0


Planting = NumbersOfArguments | Plant | Met | Repeated | Pressed | Resized | OneSided | Labelled | Emptied | Enlarged | Moved
"""What is done to the inputs of a round of its own, to show what the reference does and no draw shows."""


@dataclass(frozen=True, slots=True)
class Shown:
    """All that is done to a problem's inputs so, each in a round of its own."""

    plants: tuple[Plant, ...] = ()
    met: tuple[Met, ...] = ()
    repeated: tuple[Repeated, ...] = ()
    resized: tuple[Resized, ...] = ()
    one_sided: tuple[OneSided, ...] = ()
    labelled: tuple[Labelled, ...] = ()
    emptied: tuple[Emptied, ...] = ()
    enlarged: tuple[Enlarged, ...] = ()
    moved: tuple[Moved, ...] = ()
    pressed: tuple[Pressed, ...] = ()

    @classmethod
    def of(cls, found: Iterable[Planting]) -> Shown:
        """Those that are found, but for numbers of arguments, by their kinds."""
        every = tuple(found)
        return cls(
            tuple(one for one in every if isinstance(one, Plant)),
            tuple(one for one in every if isinstance(one, Met)),
            tuple(one for one in every if isinstance(one, Repeated)),
            tuple(one for one in every if isinstance(one, Resized)),
            tuple(one for one in every if isinstance(one, OneSided)),
            tuple(one for one in every if isinstance(one, Labelled)),
            tuple(one for one in every if isinstance(one, Emptied)),
            tuple(one for one in every if isinstance(one, Enlarged)),
            tuple(one for one in every if isinstance(one, Moved)),
            tuple(one for one in every if isinstance(one, Pressed)),
        )

    def __iter__(self) -> Iterator[Planting]:
        of_numbers = self.plants, self.met, self.repeated, self.pressed, self.resized, self.one_sided
        return chain.from_iterable((*of_numbers, self.labelled, self.emptied, self.enlarged, self.moved))


NONE_SHOWN = Shown()


@dataclass(frozen=True, slots=True)
class Balance:
    """Powers of two that lead the operands of products out of half precision's range and leave the products as they are: x W
    becomes (x / 2^26) (2^26 W), in which float32 and tf32 round as before."""

    inputs: dict[int, float]
    """Place among the arguments of forward -> its factor."""
    state: dict[str, float]
    """Parameter or buffer -> its factor."""


class InputFate(StrEnum):
    """What the reference does to a tensor among its arguments."""

    KEPT = "kept"
    """It leaves it as it is, and so must the candidate."""
    CHANGED = "changed"
    """It changes it, and so must the candidate, in the same way."""
    RETURNED = "returned"
    """It changes it and returns it: the output is compared, and a candidate may leave the argument as it is."""
