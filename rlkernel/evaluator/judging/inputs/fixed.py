"""Inputs that are the same in every draw: masks that `torch.tril` makes, and places that `torch.arange` makes.

Who writes them into a kernel would be right, whatever it is given. So a round has others, which the reference bears as it bears
those: a mask's elements are turned around along its last axis, so that each row keeps as many; consecutive places lie one farther
or, where that leads out of a table, are turned around, too; so are numbers in no order. Bounds of segments keep their order
and the lengths of the segments, which follow one another in another order. Other numbers in an order stay: kernels rely on what
it says.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from rlkernel.evaluator.program.codes import holds_numbers

WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
"""The dtypes of whole numbers that torch computes with."""
MASKS = (torch.bool, *WHOLE)
"""Dtypes of masks that are no numbers."""
MOST_AT_A_TIME = 1 << 22
"""Elements of which a fingerprint is taken at a time."""
MIXING = 0x5851F42D4C957F2D
"""An odd number that one part of a fingerprint is multiplied by before the next is added."""
SHORT = 8
"""Rows of fewer numbers may be equal by chance, as those of two truth values."""
MOST = 8
"""The most inputs that are tried, each of which costs a call of the reference or two; with more, all stay."""


def fixed_masks(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """The places of the inputs that hold two values, and the same ones in two draws. Nothing is said of a GPU's."""
    return tuple(place for place in _fixed(one, other) if _holds_two(one[place]))


def fixed_places(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """The places of the inputs of other whole numbers that are the same in two draws, and that may be others. Where bounds of
    segments are among them, to which others may belong, these alone if they are the only ones, and none otherwise."""
    found = [place for place in _fixed(one, other) if one[place].dtype in WHOLE and not _holds_two(one[place])]
    bounds = [place for place in found if _are_bounds(one[place], one)]
    if bounds:
        return tuple(bounds) if found == bounds[:1] and not _are_even(one[bounds[0]]) else ()
    return tuple(place for place in found if is_consecutive(one[place]) or not _is_sorted(one[place]))


def may_be_fixed(tensor: torch.Tensor) -> bool:
    """Whether an input of the host may get others in its place, if each draw has the same: truth values, whole numbers, or two
    floating-point numbers, one of which may be infinite."""
    return _is_told(tensor) and (tensor.dtype in MASKS or _holds_two(tensor))


def _fixed(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> list[int]:
    """The places of the inputs of several values that are the same in two draws; numbers that are scaled in a round are
    others there."""
    pairs = enumerate(zip(one, other, strict=False))
    alike = [place for place, (a, b) in pairs if _is_told(a) and _is_told(b) and _equal(a, b)]
    return [place for place in alike if not holds_one_value(one[place])]


def holds_one_value(tensor: torch.Tensor) -> bool:
    """Whether all elements are the same. A GPU is waited for."""
    return tensor.numel() > 0 and bool((tensor == tensor.flatten()[0]).all())


def _is_told(tensor: torch.Tensor) -> bool:
    """Whether it is an input of the host with several values that may be compared."""
    ordinary = tensor.device.type == "cpu" and tensor.layout is torch.strided and tensor.numel() > 1
    return ordinary and (tensor.dtype in MASKS or holds_numbers(tensor))


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype is other.dtype and one.shape == other.shape and torch.equal(one, other)


def _holds_two(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds two values, more than two times in all: truth values, or numbers in place of them."""
    if tensor.dtype is torch.bool or tensor.numel() < 3:
        return tensor.dtype is torch.bool
    low, high = tensor.aminmax()
    return bool(low < high) and bool(((tensor == low) | (tensor == high)).all())


def is_consecutive(tensor: torch.Tensor) -> bool:
    """Whether whole numbers follow one another along the last axis that has several."""
    return bool((_steps(tensor) == 1).all())


def _is_sorted(tensor: torch.Tensor) -> bool:
    """Whether whole numbers rise or fall somewhere along the last axis from its begin to its end."""
    steps = _steps(tensor)
    return bool(((steps >= 0).all(-1) | (steps <= 0).all(-1)).any())


def _steps(tensor: torch.Tensor) -> torch.Tensor:
    """The differences of neighbours along the last axis that has several elements, which is last."""
    return tensor.to(torch.int64).movedim(_axis(tensor), -1).diff(dim=-1)


def _are_bounds(tensor: torch.Tensor, given: Sequence[torch.Tensor]) -> bool:
    """Whether whole numbers that rise from zero end with the length of another input: where segments of it begin and end."""
    if tensor.dim() != 1 or int(tensor[0]) != 0 or not bool((_steps(tensor) >= 0).all()):
        return False
    return any(int(tensor[-1]) in other.shape for other in given if other is not tensor)


def _are_even(tensor: torch.Tensor) -> bool:
    """Whether all segments between these bounds have one length."""
    return bool((_steps(tensor) == _steps(tensor)[0]).all())


def _is_symmetric(tensor: torch.Tensor) -> bool:
    """Whether it holds matrices of several numbers, and each is its own transpose."""
    return tensor.dim() > 1 and 1 < tensor.shape[-1] == tensor.shape[-2] and torch.equal(tensor, tensor.mT)


def _axis(tensor: torch.Tensor) -> int:
    """The last axis that has several elements."""
    return max(axis for axis, size in enumerate(tensor.shape) if size > 1)


def _first_axis(tensor: torch.Tensor) -> int:
    """The first axis that has several elements."""
    return min(axis for axis, size in enumerate(tensor.shape) if size > 1)


def turned_around(tensor: torch.Tensor) -> torch.Tensor:
    """The elements moved along their last axis by about half of it, those at the end to its begin; by one where that gives the
    same. Of numbers that rise, which are bounds of segments, the lengths of the segments are."""
    axis = _axis(tensor)
    numbers = tensor.dim() == 1 and tensor.dtype in WHOLE and not _holds_two(tensor)
    if numbers and _is_sorted(tensor) and not is_consecutive(tensor):
        lengths = turned_around(torch.stack([tensor.diff(), tensor.diff()]))[0]
        return torch.cat([tensor[:1], tensor[:1] + lengths.cumsum(0).to(tensor.dtype)])
    size = tensor.shape[axis]
    found = tensor.roll(min(size - 1, size // 2 | 1), axis)
    return tensor.roll(1, axis) if torch.equal(found, tensor) else found


def copies(given: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """The places of the inputs that hold the numbers of an earlier one, as the keys of an attention to itself hold those of its
    queries, and both moments of an optimiser are zeros: whoever reads the earlier one in their place would be right. Lists of
    several numbers may be in an order, and stay.

    >>> copies([torch.eye(2), torch.ones(2, 2), torch.eye(2), torch.arange(2.0), torch.arange(2.0), torch.ones(2, 2)])
    (2, 5)
    """
    return _later([place for place, tensor in enumerate(given) if holds_numbers(tensor) and _may_move(tensor)], given)


def drawn_whole(given: Sequence[torch.Tensor], again: Sequence[torch.Tensor]) -> list[int]:
    """The places of the inputs of whole numbers or truth values that differ from draw to draw, are in no order, and no symmetric
    matrices, of which a kernel may read one half. Those that are the same in each draw are turned around, and of a GPU's nothing
    is said."""
    pairs = enumerate(zip(given, again, strict=False))
    drawn = [place for place, (one, other) in pairs if _is_told(one) and one.dtype in MASKS and not _equal(one, other)]
    varied = (place for place in drawn if not holds_one_value(given[place]))
    return [place for place in varied if not _is_sorted(given[place]) and not _is_symmetric(given[place])]


def whole_copies(given: Sequence[torch.Tensor], drawn: Sequence[int]) -> tuple[int, ...]:
    """Those of the places of `drawn_whole` that hold the numbers of an earlier one of them.

    >>> one, other = torch.tensor([3, 0, 2, 1]), torch.tensor([1, 2, 0, 3])
    >>> given, again = [one, one, one.sort()[0], one.sort()[0]], [other, other, other.sort()[0], other.sort()[0]]
    >>> whole_copies(given, drawn_whole(given, again))
    (1,)
    """
    return _later(drawn, given)


def repeated(given: Sequence[torch.Tensor], drawn: Sequence[int]) -> tuple[int, ...]:
    """Those of which most rows are copies of each other, as `ids.repeat(batch, 1)` makes them: whoever reads the first row for
    all would be right. Rows that share memory are one row. drawn: those of `drawn_whole`, or of consecutive places, which
    `torch.arange(length).repeat(batch, 1)` gives each sequence.

    >>> one, other = torch.tensor([[3, 0, 2, 1, 7, 6, 4, 5]]), torch.tensor([[1, 2, 0, 3, 5, 4, 7, 6]])
    >>> given, again = [one.repeat(3, 1), one.expand(3, 8), one], [other.repeat(3, 1), other.expand(3, 8), other]
    >>> repeated(given, drawn_whole(given, again))
    (0,)
    """
    return tuple(place for place in drawn if repeats_rows(given[place]))


def is_copy(given: Sequence[torch.Tensor], place: int) -> bool:
    """Whether an input holds what an earlier one does. A GPU is waited for."""
    return any(_equal(given[place], earlier) for earlier in given[:place])


def repeats_rows(tensor: torch.Tensor) -> bool:
    """Whether most rows are copies of each other. A GPU is waited for."""
    return _earlier_rows(tensor) is not None


def _earlier_rows(tensor: torch.Tensor) -> torch.Tensor | None:
    """How many earlier rows along the first axis that has several are the same, for each of them; None where fewer than half
    are copies, or rows are so short that chance makes them equal."""
    axis = _first_axis(tensor)
    rows = tensor.movedim(axis, 0).reshape(tensor.shape[axis], -1)
    if rows.shape[1] < SHORT or not tensor.stride(axis):
        return None
    found, kinds = torch.unique(_fingerprints(rows), return_inverse=True)
    if 2 * len(found) > len(rows):
        return None
    order = kinds.argsort(stable=True)
    earlier = torch.empty_like(kinds)
    earlier[order] = torch.arange(len(rows), device=kinds.device) - torch.searchsorted(kinds[order], kinds[order])
    return earlier


def _fingerprints(rows: torch.Tensor) -> torch.Tensor:
    """A number of 64 bits for each row of whole numbers: equal rows have equal ones, and others differ but for a chance of about
    2^-60. To sort the rows themselves takes seconds where they are long and equal."""
    width = max(SHORT, MOST_AT_A_TIME // rows.shape[0])
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, (min(width, rows.shape[1]),), generator=generator).to(rows.device) | 1
    found = torch.zeros(rows.shape[0], dtype=torch.int64, device=rows.device)
    for start in range(0, rows.shape[1], width):
        part = rows[:, start : start + width].to(torch.int64)
        found = found * MIXING + (part * factors[: part.shape[1]]).sum(1)
    return found


def _later(told: Sequence[int], given: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """Those of these places that hold what an earlier one of them holds."""
    pairs = ((place, earlier) for n, place in enumerate(told) for earlier in told[:n])
    return tuple(dict.fromkeys(place for place, earlier in pairs if _equal(given[place], given[earlier])))


def _may_move(tensor: torch.Tensor) -> bool:
    """Whether slices of a tensor may stand elsewhere: those of more than one number, or of one value."""
    return any(1 < size < tensor.numel() for size in tensor.shape) or (tensor.numel() > 1 and holds_one_value(tensor))


def set_apart(tensor: torch.Tensor, steps: int) -> torch.Tensor:
    """The slices of a tensor moved on along its first axis that has several, those at the end to its begin: by so many places, or
    by a few of them where that would be all of it."""
    axis = _first_axis(tensor)
    return tensor.roll(1 + (steps - 1) % (tensor.shape[axis] - 1), axis)


def rows_set_apart(tensor: torch.Tensor, steps: int) -> torch.Tensor:
    """Each row along the first axis that has several, moved on in itself by a place for each earlier row that it repeats. Those
    of all inputs are moved alike, because numbers at one place of two inputs may belong together, as rows and columns do by which
    a matrix is filled; and otherwise where an input is set apart by `steps` from what it is a copy of. A GPU is waited for.

    >>> rows_set_apart(torch.arange(8).repeat(2, 1), 0)
    tensor([[0, 1, 2, 3, 4, 5, 6, 7],
            [7, 0, 1, 2, 3, 4, 5, 6]])
    """
    earlier = _earlier_rows(tensor)
    if earlier is None:  # in another draw
        return set_apart(tensor, steps) if steps else tensor
    by = earlier * (steps + 1) + steps
    axis = _first_axis(tensor)
    rows = tensor.movedim(axis, 0).flatten(1)
    length = rows.shape[1]
    turned = rows.gather(1, (torch.arange(length, device=rows.device) - by[:, None]) % length)
    return turned.view(tensor.movedim(axis, 0).shape).movedim(0, axis)


def moved_on(tensor: torch.Tensor) -> torch.Tensor:
    """Whole numbers that are one larger."""
    return tensor + 1


def borne(
    masks: Sequence[int], places: Sequence[int], consecutive: Sequence[int],
    bears: Callable[[tuple[int, ...], tuple[int, ...]], bool],
) -> tuple[tuple[int, ...], tuple[int, ...]]:  # fmt: skip
    """The inputs that are turned around, and those that are moved on: each alone is borne. `bears`: whether the reference bears
    that these are."""
    turned, moved = list[int](), list[int]()
    if len(masks) + len(places) > MOST:
        return (), ()
    for place in (*masks, *places):
        if place in consecutive and bears((), (place,)):
            moved.append(place)
        elif bears((place,), ()):
            turned.append(place)
    return tuple(turned), tuple(moved)
