"""The elementwise lines of a kernel, with the operands that they load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envs.world.ops import Kind, Step
from envs.world.task import Task
from envs.world.write.text import Page


@dataclass(frozen=True, slots=True)
class Reach:
    """How a kernel addresses operands: index and mask of one value per column, and of one value per element."""

    column: str
    column_mask: str
    element: str
    element_mask: str
    wrong_column: str
    """The index that people confuse with `column`."""


def element_lines(page: Page, steps: Sequence[Step], reach: Reach | None) -> list[str]:
    """One line per step. `reach` is None where no operand can be loaded."""
    lines = []
    for step in steps:
        assert step.op.kind is Kind.ELEMENT
        operand = ""
        if step.op.vector:
            assert reach is not None
            index = page.pick("vector.index", reach.column, wrong=reach.wrong_column)
            operand = f"tl.load({step.op.vector}_ptr + {index}, mask={reach.column_mask})"
        elif step.op.tensor:
            assert reach is not None
            index = page.pick("tensor.index", reach.element, column=reach.column)
            operand = f"tl.load({step.op.tensor}_ptr + {index}, mask={reach.element_mask})"
        constants = list(step.constants)
        if constants:
            others = [c[-1] for c in step.op.constants if c[-1] != constants[-1]]
            constants[-1] = page.pick("constant", constants[-1], other=others[len(step.op.name) % len(others)])
        right = step.op.triton.format(*constants, operand=operand)
        lines.append(page.pick("element", page.pick(f"element.{step.op.name}", right)))
    return lines


def operands(steps: Sequence[Step]) -> list[str]:
    """The operands of the steps by name, e.g. `["bias", "r"]`."""
    return [step.op.vector or step.op.tensor for step in steps if step.op.vector or step.op.tensor]


def passed(names: Sequence[str]) -> list[str]:
    """How `forward` passes operands: parameters belong to the module, other inputs are arguments."""
    return [f"self.{name}" if name in ("bias", "weight", "w") else name for name in names]


def widen(page: Page, task: Task) -> str:
    """What follows a load so that the kernel computes in float32."""
    return page.pick("widen", ".to(tl.float32)") if task.half else ""


def kernel_name(steps: Sequence[Step]) -> str:
    """A kernel's name: those of its operations, three at most."""
    names = [step.op.name for step in steps]
    return "_".join(names[:3]) + "_kernel"
