"""What a call computes of tensors that its own text spells out, and then only reads: work of the host, which no GPU does.

Example: `size = int(torch.prod(torch.tensor(x.shape[1:])).item())`. The number is known when the call is traced, so the tensor
and the product can go. On a GPU they would cost a copy that waits and a launch; in plain Python they stay on the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlkernel.evaluator.program.operators import is_random
from rlkernel.evaluator.program.references import bound_by, needed_from, tensor_numbers
from rlkernel.evaluator.program.schema import Literal, Op, Step
from rlkernel.evaluator.program.values import Value


def without_host_values(steps: Sequence[Step], output: Value, kept: Iterable[int]) -> tuple[Step, ...]:
    """The steps of a call without literal tensors, and what is computed of these alone, that neither another step nor the output
    takes. `kept`: tensors that the call leaves to the next one. Random operators stay, because they move the generator."""
    group: dict[int, set[int]] = {}  # tensor -> all that is computed together with it, in place or not
    host: list[tuple[Step, int]] = []
    others: list[Step] = []
    for step in steps:
        if isinstance(step, Literal):
            group[step.out] = {step.out}
            host.append((step, step.out))
            continue
        made = tensor_numbers(bound_by(step))
        reads = tensor_numbers(needed_from([step], None)) - (made - group.keys())
        if isinstance(step, Op) and reads and reads <= group.keys() and not is_random(step.op):
            together = made.union(*(group[number] for number in reads))
            group.update(dict.fromkeys(together, together))
            host.append((step, min(reads)))
        else:
            others.append(step)
    asked = tensor_numbers(needed_from(others, output)) | set(kept)
    alive = {number for number, together in group.items() if together & asked}
    dropped = {id(step) for step, number in host if number not in alive}
    return tuple(step for step in steps if id(step) not in dropped)
