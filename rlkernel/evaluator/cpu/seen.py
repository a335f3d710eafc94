"""Which operations of a kernel a watch takes down: each once, and those alone whose values are known while it is priced."""

from __future__ import annotations

from typing import Any, Protocol

from rlkernel.evaluator.cpu.kinds import Kinds
from rlkernel.evaluator.cpu.loaded import is_loaded


class Watched(Protocol):
    """Where programs run."""

    dry: bool
    last_turn: bool
    """Whether the turn of a shortened loop runs that stands for others, whose number is one of theirs."""
    kinds: Kinds


def is_seen(machine: Watched, operands: Any) -> bool:
    """Whether an operation on these operands is one that the kernel makes now, and depends on no memory that nobody knows."""
    return not machine.kinds.replaying and not (machine.dry and is_loaded(operands) and not machine.last_turn)
