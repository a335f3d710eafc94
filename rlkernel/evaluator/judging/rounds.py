"""What the trusted side knows of one call of forward, and whether a candidate's call agrees with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from rlkernel.evaluator.judging.errors.choices import Choice
from rlkernel.evaluator.judging.errors.comparison import LENT, Match, bits, compare_structure, compare_tensor
from rlkernel.evaluator.judging.errors.jumping import right_by_some
from rlkernel.evaluator.judging.errors.own_error import OwnError
from rlkernel.evaluator.judging.errors.place import place_of
from rlkernel.evaluator.judging.errors.several_right import compare_with_any
from rlkernel.evaluator.judging.errors.tolerance import tolerance
from rlkernel.evaluator.judging.errors.wavering import OtherRoundings, some_give
from rlkernel.evaluator.messages.judgement import InputFate, Tolerance
from rlkernel.evaluator.program.codes import equal_or_wrong
from rlkernel.types import Precision


@dataclass(frozen=True, slots=True)
class Expected:
    """What the reference gave in one call."""

    structure: Any
    reference: tuple[torch.Tensor, ...]
    exact: tuple[torch.Tensor, ...]
    inputs: tuple[torch.Tensor, ...]
    """After the call."""
    inputs_before: tuple[torch.Tensor, ...]
    fates: tuple[InputFate, ...]
    allowed: tuple[Tolerance, ...]
    """What is allowed of each output."""
    beside: Mapping[int, tuple[torch.Tensor, Tolerance]] = field(default_factory=dict)
    """Output -> another result that is right, and what is allowed from it: float64's, where the reference is its own measure."""
    rounded: Mapping[int, tuple[torch.Tensor, ...]] = field(default_factory=dict)
    """Output -> what tensor cores make of it, where that is something else: another choice of those that a rounding decides."""
    state: Mapping[str, tuple[torch.Tensor, Tolerance]] = field(default_factory=dict)
    """Buffers and parameters that forward changes, after the call, and what is allowed of them."""
    written: Mapping[int, Tolerance] = field(default_factory=dict)
    """What is allowed of the arguments that forward changes and does not return, by their places."""
    choices: Mapping[int, Choice] = field(default_factory=dict)
    """Output -> of which numbers its indices name some, where PyTorch leaves open which of equal ones."""
    lent: tuple[bool, ...] = ()
    """Whether each output lies in the memory of an input."""
    other: bool = False
    """In the other of train and eval mode."""
    ordinary: bool = False
    """The problem as it is written."""
    note: str = ""
    """Stands behind a miss: what is special about the round."""
    blame: Callable[[Sequence[torch.Tensor]], str] | None = None
    """Stands behind the note, found from the wrong outputs: which parameters they ignore."""
    roundings: OtherRoundings | None = None
    """What the reference gives with other roundings; None where a call before it has left state."""

    @property
    def made(self) -> list[tuple[torch.Tensor, Tolerance]]:
        """The outputs and the arguments that forward changes, and what is allowed of each."""
        written = [(self.inputs[place], allowed) for place, allowed in self.written.items()]
        return [*zip(self.reference, self.allowed, strict=True), *written]


def fates(
    inputs: Sequence[torch.Tensor], before: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> tuple[InputFate, ...]:
    """What the reference did to each of its `inputs`, given a copy of them from before."""
    returned = {t.untyped_storage().data_ptr() for t in outputs}
    found = []
    for after, was in zip(inputs, before, strict=True):
        same = not after.numel() or torch.equal(bits(after), bits(was))
        shared = after.untyped_storage().data_ptr() in returned
        found.append(InputFate.KEPT if same else InputFate.RETURNED if shared else InputFate.CHANGED)
    return tuple(found)


def returned_as(argument: torch.Tensor, outputs: Sequence[torch.Tensor]) -> int | None:
    """The place among the outputs at which a reference returns this argument, as a whole; None where it does not."""
    for place, output in enumerate(outputs):
        if argument.is_set_to(output):
            return place
    return None


def compare_round(
    structure: Any,
    tensors: Sequence[torch.Tensor],
    overlapping: Sequence[bool],
    lent: Sequence[bool],
    inputs: Sequence[torch.Tensor],
    state: Mapping[str, torch.Tensor],
    expected: Expected,
) -> Match:
    """All outputs of one call, then the arguments and the module's state after it."""
    mismatch = compare_structure(structure, expected.structure)
    if mismatch or len(tensors) != len(expected.reference):
        return Match(False, mismatch or "another number of output tensors")
    mode = " in the other of train and eval mode" if expected.other else ""
    error = 0.0
    for index, found in enumerate(tensors):
        where = "output" if len(tensors) == 1 else f"output {index}"
        if lent[index] and not expected.lent[index]:
            return Match(False, LENT.format(where=where) + mode)
        match = compare_tensor(
            found, expected.reference[index], expected.exact[index], allowed=expected.allowed[index],
            overlapping=overlapping[index], where=where,
        )  # fmt: skip
        if not match.matches and match.numeric and index in expected.beside:
            exact, allowed = expected.beside[index]
            other = compare_tensor(
                found, expected.reference[index], exact, allowed=allowed, overlapping=overlapping[index], where=where
            )
            match = other if other.matches else match
        if not match.matches and match.numeric and index in expected.rounded:
            sides = (expected.exact[index], *expected.rounded[index])
            other = compare_with_any(found, sides, allowed=expected.allowed[index], overlapping=overlapping[index], where=where)
            match = other if other.matches else match
        if not match.matches and index in expected.choices and not overlapping[index]:
            chosen = expected.choices[index].allows(found, expected.reference[index])
            match = Match(True, "") if chosen else match
        if not match.matches and match.numeric and equal_or_wrong(found.dtype) and expected.roundings is not None:
            match = Match(True, "") if some_give(found, expected.reference[index], index, expected.roundings.turns()) else match
        elif not match.matches and match.numeric and expected.roundings is not None:
            match = right_by_some(
                found, expected.exact[index], index, expected.roundings,
                allowed=expected.allowed[index], overlapping=overlapping[index], where=where,
            ) or match  # fmt: skip
        error = max(error, match.error)
        if not match.matches:
            blame = expected.blame(tensors) if expected.blame is not None and match.numeric else ""
            exact = expected.reference[index] if equal_or_wrong(found.dtype) else expected.exact[index]
            worst = place_of(found, exact, expected.allowed[index])
            return Match(False, match.detail + mode + expected.note + blame, error, place=worst)
    detail = _inputs(inputs, tensors, expected) or _state(state, expected)
    return Match(detail is None, (detail or "") + (mode if detail else ""), error)


def _inputs(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], expected: Expected) -> str | None:
    """What is wrong with the arguments after a call that gave these outputs, which are right."""
    rows = zip(inputs, expected.inputs, expected.inputs_before, expected.fates, strict=True)
    for index, (found, wanted, before, fate) in enumerate(rows):
        if found.shape == before.shape and torch.equal(bits(found), bits(before)):
            if fate is InputFate.CHANGED:
                return f"forward leaves its input {index} as it is, the reference changes it"
        elif fate is InputFate.KEPT:
            return f"forward changes its input {index}, the reference does not"
        elif (place := returned_as(wanted, expected.reference)) is not None and _equal(found, outputs[place]):
            continue  # it holds what the output holds
        else:
            where, usual = f"input {index} after forward", tolerance(wanted.dtype, OwnError(), Precision.STRICT)
            allowed = expected.written.get(index, usual)
            match = compare_tensor(found, wanted, wanted, allowed=allowed, overlapping=False, where=where)
            if not match.matches:
                return match.detail
    return None


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype is other.dtype and torch.equal(bits(one), bits(other))


def _state(state: Mapping[str, torch.Tensor], expected: Expected) -> str | None:
    for name, (wanted, allowed) in expected.state.items():
        found = state.get(name)
        if found is None:
            return f"the reference's forward changes {name}, which ModelNew does not have"
        match = compare_tensor(found, wanted, wanted, allowed=allowed, overlapping=False, where=f"{name} after forward")
        if not match.matches:
            return match.detail
    return None
