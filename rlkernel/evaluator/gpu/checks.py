"""Collects comparisons that run on the GPU behind the work that they judge, and reads all their answers after one wait.

A waiting host would leave gaps between the kernels, so that each comparison only leaves a few numbers, and a rule that says what
they mean. `Checks.finish` waits once and applies the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from rlkernel.evaluator.gpu.fused import Fused, kept
from rlkernel.evaluator.gpu.guards import Guards
from rlkernel.evaluator.gpu.stopwatch import settle
from rlkernel.evaluator.judging.errors.comparison import (
    LENT,
    Match,
    Sizes,
    bits,
    compare_structure,
    decide,
    mismatch,
    wrong_slices,
)
from rlkernel.evaluator.judging.errors.own_error import OwnError
from rlkernel.evaluator.judging.errors.tolerance import tolerance
from rlkernel.evaluator.judging.rounds import returned_as
from rlkernel.evaluator.messages.judgement import InputFate, Tolerance
from rlkernel.evaluator.program.codes import equal_or_wrong
from rlkernel.evaluator.program.tensors import flatten, lent, overlapping
from rlkernel.types import Precision


class Strayed(Exception):
    """The candidate has read or written memory that is not its own."""


class Checks:
    """The comparisons of one piece of work, in order. What is compared must stay as it is until `finish`."""

    def __init__(self, fused: Fused) -> None:
        self._fused = fused
        self._sums: list[torch.Tensor] = []
        self._flags: list[torch.Tensor] = []
        self._tell: list[Callable[[list[list[float]], list[bool]], Match | None]] = []
        self.worst = 0.0
        """The largest error of an output, known once `finish` has returned."""
        self.largest = 0.0
        """The largest difference in one element of what was compared as outputs are; of whole numbers, how many differ."""

    def zones(self, *guards: Guards) -> None:
        """Check that nothing was written between the tensors of `guards`; otherwise `finish` raises Strayed."""
        flags = [g.broken() for g in guards if g.used]
        if not flags:
            return
        first, last = len(self._flags), len(self._flags) + len(flags)
        self._flags += [kept(flag) for flag in flags]

        def tell(sums: list[list[float]], told: list[bool]) -> Match | None:
            if any(told[first:last]):
                raise Strayed("a kernel writes outside its tensors")
            return None

        self._tell.append(tell)

    def unchanged(self, tensors: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], what: str) -> None:
        """Check that `tensors` are what is `wanted`, bit for bit and in the same layout. `what` is a failure's text."""
        for index, (a, b) in enumerate(zip(tensors, wanted, strict=True)):
            if a.shape != b.shape or a.stride() != b.stride():
                self._fail(what.format(index=index))
            elif a.numel():
                self._unchanged(index, (bits(a) != bits(b)).any(), what)

    def _unchanged(self, index: int, flag: torch.Tensor, what: str) -> None:
        """Check that `flag`, on the device, is not set."""
        place = len(self._flags)
        self._flags.append(kept(flag))
        detail = what.format(index=index)
        self._tell.append(lambda sums, told: Match(False, detail) if told[place] else None)

    def outputs(
        self, output: Any, expected: Any, allowed: Sequence[Tolerance], note: str = ""
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:  # fmt: skip
        """Check an output against the reference's, with one tolerance per tensor. `note` follows a failure's text. Returns the
        tensors of both, in order."""
        found: list[torch.Tensor] = []
        wanted: list[torch.Tensor] = []
        structures = flatten(output, found), flatten(expected, wanted)
        detail = compare_structure(*structures)
        if detail is not None or len(found) != len(wanted):
            self._fail((detail or "another number of output tensors") + note)
            return found, wanted
        for index, (f, e, limit) in enumerate(zip(found, wanted, allowed, strict=True)):
            where = "output" if len(found) == 1 else f"output {index}"
            wrong = mismatch(f, e, overlapping=overlapping(f), where=where)
            if wrong is not None:
                self._fail(wrong + note)
                break
            self._output(f, e, limit, where, note)
        return found, wanted

    def own(
        self, found: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor],
        given: Sequence[torch.Tensor],
    ) -> None:  # fmt: skip
        """Check that none of the outputs `found` lies in the memory of an input, unless the reference's output does, which was
        `given` its own inputs."""
        for index, (f, e) in enumerate(zip(found, wanted, strict=False)):  # another number is told by `outputs`
            if lent(f, inputs) and not lent(e, given):
                self._fail(LENT.format(where="output" if len(found) == 1 else f"output {index}"))

    def inputs(
        self, tensors: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], before: Sequence[torch.Tensor],
        fates: Sequence[InputFate], outputs: Sequence[torch.Tensor] = (), expected: Sequence[torch.Tensor] = (),
    ) -> None:  # fmt: skip
        """Arguments after forward: as they were, or changed as the reference changes them, see `InputFate`. `outputs`: what the
        candidate returned, and `expected`: what the reference returned, which are compared besides."""
        for index, (found, after, was, fate) in enumerate(zip(tensors, wanted, before, fates, strict=True)):
            if fate is InputFate.KEPT:
                self._kept(index, found, was)
            elif fate is InputFate.CHANGED:
                self.changed_alike(found, after, f"input {index} after forward")
            elif found.numel():  # it is returned, too: what is compared as an output may be missing here
                place = returned_as(after, expected)
                mine = outputs[place] if place is not None and place < len(outputs) else None
                if mine is None or not found.is_set_to(mine):
                    self._either(index, found, after, was)

    def _kept(self, index: int, found: torch.Tensor, was: torch.Tensor) -> None:
        what = "forward changes its input {index}, the reference does not"
        if found.shape != was.shape or found.stride() != was.stride():
            self._fail(what.format(index=index))
        elif found.numel():
            self._unchanged(index, (bits(found) != bits(was)).any(), what)

    def changed_alike(self, found: torch.Tensor, wanted: torch.Tensor, where: str) -> None:
        """What the reference changes in an argument is changed in the same way, as outputs are compared, up to the floor of its
        dtype."""
        self._alike(found, wanted, where, tolerance(wanted.dtype, OwnError(), Precision.STRICT), "", final=True)

    def state_alike(self, found: torch.Tensor, wanted: torch.Tensor, where: str, allowed: Tolerance, note: str = "") -> None:
        """Check a parameter or buffer that the reference changes, as outputs are compared."""
        self._alike(found, wanted, where, allowed, note, final=False)

    def _alike(
        self, found: torch.Tensor, wanted: torch.Tensor, where: str, allowed: Tolerance, note: str, *, final: bool
    ) -> None:  # fmt: skip
        wrong = mismatch(found, wanted, overlapping=False, where=where)
        if wrong is not None:
            self._fail(wrong + note)
        elif found.numel():
            self._output(found, wanted, allowed, where, note, final=final)

    def _either(self, index: int, found: torch.Tensor, after: torch.Tensor, was: torch.Tensor) -> None:
        allowed, where = tolerance(after.dtype, OwnError(), Precision.STRICT), f"input {index} after forward"
        wrong = mismatch(found, after, overlapping=False, where=where)
        if wrong is not None:
            self._fail(wrong)
            return
        place, flag = len(self._sums), len(self._flags)
        self._sums.append(kept(self._fused.sums(found, after)))
        self._flags.append(kept((bits(found) != bits(was)).any()))

        def tell(sums: list[list[float]], told: list[bool]) -> Match | None:
            if not told[flag]:
                return None
            match = decide(found, after, after, sums[place], allowed=allowed, where=where)
            return None if match.matches else replace(match, numeric=False)

        self._tell.append(tell)

    def missing(self, name: str) -> None:
        """The reference's forward changes state that the candidate does not have."""
        self._fail(f"the reference's forward changes {name}, which ModelNew does not have")

    def _fail(self, detail: str) -> None:
        """Take note of a failure that is known already."""
        self._tell.append(lambda sums, told: Match(False, detail))

    def _output(
        self, found: torch.Tensor, expected: torch.Tensor, allowed: Tolerance, where: str, note: str, *, final: bool = False
    ) -> None:
        """Check one tensor of an output, of the right shape and dtype, by its values. A final miss is not looked at more closely,
        because only outputs and state are."""
        place, flag = len(self._sums), len(self._flags)
        self._sums.append(kept(self._fused.sums(found, expected)))
        real = expected.is_floating_point() and not equal_or_wrong(expected.dtype) and math.isfinite(allowed.element)
        if real:
            self._flags.append(kept(wrong_slices(found, expected, allowed).any()))

        def tell(sums: list[list[float]], told: list[bool]) -> Match | None:
            slices = told[flag] if real else True
            sizes = Sizes.of(sums[place], expected)
            self.largest = max(self.largest, sizes.largest if sizes.finite else math.inf)
            match = decide(found, expected, expected, sums[place], allowed=allowed, where=where, slices=slices)
            self.worst = max(self.worst, match.error)
            return None if match.matches else replace(match, detail=match.detail + note, numeric=match.numeric and not final)

        self._tell.append(tell)

    def difference(self, first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> Callable[[], float]:
        """Return a function that gives the largest ||a - b|| / ||a|| over the outputs, once `finish` has returned.

        It is 0 if all outputs are equal, and at least a tiny number if they are not.
        """
        places = []
        for a, b in zip(first, second, strict=True):
            if a.numel():
                places.append((len(self._sums), len(self._flags), a))
                self._sums.append(kept(self._fused.sums(b, a)))
                self._flags.append(kept((bits(a) != bits(b)).any()))
        answer = [0.0]

        def tell(sums: list[list[float]], told: list[bool]) -> Match | None:
            for place, flag, tensor in places:
                if told[flag]:
                    sizes = Sizes.of(sums[place], tensor)
                    answer[0] = max(answer[0], sizes.error if sizes.finite else float("inf"), 1e-30)
            return None

        self._tell.append(tell)
        return lambda: answer[0]

    def finish(self, seconds: float) -> Match:
        """Wait for at most so many seconds, and return the first failure, or a match if there is none.

        Failures that are not `numeric` go first. Raises Hung, Strayed.
        """
        if not self._tell:
            return Match(True, "", self.worst)
        settle(seconds)
        sums = torch.stack(self._sums).tolist() if self._sums else []
        flags = torch.stack(self._flags).tolist() if self._flags else []
        told, self._tell = self._tell, []  # they hold the tensors, and this
        misses = [match for tell in told if (match := tell(sums, flags)) is not None]
        misses.sort(key=lambda match: match.numeric)
        return misses[0] if misses else Match(True, "", self.worst)
