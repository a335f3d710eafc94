"""Values of a reference's tensors, as its inputs and weights decide them where they are drawn as the problem's author draws them.

A reference may ask for values before it runs: `x[mask]` is as long as a mask says, and an expert that no token chooses is left
out. Its trace, which has no data, computes what leads to such a value. What was computed is kept for the next question, because
all of a layer's experts ask for what one router says.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils._python_dispatch import _disable_current_modes

from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Op, Program, Step
from rlkernel.evaluator.program.values import TensorRef
from rlkernel.evaluator.trace.identities import Identities
from rlkernel.evaluator.trace.touched import written_by

MAX_DRAWN = 1 << 27
"""The most elements of all tensors together on the way to one value: a processor computes as many in a second or two."""
MAX_KEPT = 1 << 24
"""The most elements of a tensor that is kept."""


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

    def forget_written(self, history: Sequence[Step]) -> None:
        """Forget what steps have written to since this was asked last. `history`: all steps of the trace."""
        new = {self._ids.storage(number) for step in history[self._looked_at :] for number in written_by(step)}
        self._looked_at = len(history)
        self._written |= new
        if new:
            self.known = {number: values for number, values in self.known.items() if self._ids.storage(number) not in new}

    def compute(self, number: int, steps: Sequence[Step], given: dict[int, torch.Tensor], seed: int) -> torch.Tensor:
        """The values of the tensor with an id, by what must run for it, from those of the tensors that are given."""
        self.asked = True
        program = Program((), (), (), {}, tuple(given), tuple(steps), TensorRef(number))

        def keep(index: int, step: Step, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> None:
            outs = [out for out in step.outs if out is not None] if isinstance(step, Op) else []
            for out, values in zip(outs, made, strict=True):
                if values.numel() <= MAX_KEPT and self._ids.storage(out) not in self._written:
                    self.known[out] = values

        with _disable_current_modes(), torch.no_grad():
            replay = Replay(program, torch.device("cpu"), lambda *call: None)
            found = replay.forward(list(given.values()), seed, observe=keep)
        assert isinstance(found, torch.Tensor)
        return found
