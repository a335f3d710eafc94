"""Values of a reference's tensors, as its inputs and weights decide them where they are drawn as the problem's author draws them.

A reference may ask for values before it runs: `x[mask]` is as long as a mask says, and an expert that no token chooses is left
out. Its trace, which has no data, computes what leads to such a value. What was computed is kept for the next question, because
all of a layer's experts ask for what one router says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch.utils._python_dispatch import _disable_current_modes

from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Op, Program, Step
from rlkernel.evaluator.program.values import TensorRef
from rlkernel.evaluator.trace.identities import Identities
from rlkernel.evaluator.trace.touched import draws, made_by, written_by
from rlkernel.seeds import seed_generators

MAX_DRAWN = 1 << 28
"""The most elements of all tensors together on the way to one value."""
MAX_KEPT = 1 << 30
"""The most bytes of all tensors together that are kept."""


class DrawnValues:
    """What was computed for the questions of one trace."""

    def __init__(self, ids: Identities) -> None:
        self._ids = ids
        self.known: dict[int, torch.Tensor] = {}
        """Tensor, by its id -> its values; of those whose memory no step has written to."""
        self.asked = False
        """Whether any value was asked for."""
        self._written: set[int] = set()
        """The memory that steps have written to."""
        self._looked_at = 0
        """How many of the trace's steps were looked at for what they write."""
        self._began = 0
        """The first id that the call in progress has given."""

    def begin(self) -> None:
        """A call of forward begins: it draws what the last one has drawn, and nobody asks again for what that has made."""
        self._began = len(self._ids)
        self.known.clear()

    def forget_written(self, history: Sequence[Step]) -> None:
        """Forget what steps have written to since this was asked last. `history`: all steps of the trace."""
        new = {self._ids.storage(number) for step in history[self._looked_at :] for number in written_by(step)}
        self._looked_at = len(history)
        self._written |= new
        if new:
            self.known = {number: values for number, values in self.known.items() if self._ids.storage(number) not in new}

    def compute(
        self, number: int, steps: Sequence[Step], given: Mapping[int, torch.Tensor], seed: int, *, keeps: bool
    ) -> torch.Tensor:
        """The values of the tensor with an id, by what must run for it, from those of the tensors that are given. keeps: whether
        they are kept for the next question."""
        self.asked = True
        program = Program((), (), (), {}, tuple(given), tuple(steps), TensorRef(number))
        kept = _bytes_of(self.known.values())
        drawn = Counter[int]()

        def draw_alike(step: Step) -> None:
            if draws(step):
                [out, *_] = made_by(step)
                seed_generators(self._seed_of(out, drawn[out], seed))
                drawn[out] += 1

        def keep(index: int, step: Step, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> None:
            outs = [out for out in step.outs if out is not None] if isinstance(step, Op) else []
            for out, values in zip(outs, made, strict=True):
                self._keep(out, values, kept)

        with _disable_current_modes(), torch.no_grad():
            for leaf, values in given.items() if keeps else ():
                self._keep(leaf, values, kept)
            replay = Replay(program, torch.device("cpu"), lambda *call: None)
            replay.before_step = draw_alike
            found = replay.forward(list(given.values()), seed, observe=keep if keeps else None)
        assert isinstance(found, torch.Tensor)
        return found

    def _seed_of(self, out: int, times: int, seed: int) -> int:
        """That of a step which draws the tensor with an id: the same whatever else runs for a question, and in each call."""
        own = out >= self._began
        return hash((seed, own, out - self._began if own else out, times)) & 0xFFFF_FFFF  # torch takes no more bits

    def _keep(self, number: int, values: torch.Tensor, kept: dict[int, int]) -> None:
        """Know the values of a tensor, if its memory is not written to and there is room. `kept`: see `_bytes_of`."""
        more = _bytes_of([values])
        if self._ids.storage(number) not in self._written and (more.keys() <= kept.keys() or _total(kept, more) <= MAX_KEPT):
            kept |= more
            self.known[number] = values


def _bytes_of(tensors: Iterable[torch.Tensor]) -> dict[int, int]:
    """The memory of tensors -> its bytes. A view holds all of its memory."""
    return {values.untyped_storage()._cdata: values.untyped_storage().nbytes() for values in tensors}


def _total(kept: dict[int, int], more: dict[int, int]) -> int:
    return sum(kept.values()) + sum(more.values())
