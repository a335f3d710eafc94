"""A candidate for an elementwise chain as a value, and its text: one line of plan and one python block.

A draft says which of the chain's operations the Triton kernel does (the others are left to torch), how it is launched, and
which mistakes are in it. The text is compact but ordinary Triton: pointers, a mask, a block size, a one-dimensional grid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from envs.chains import Step, columns, has_bias, parse


class Use(StrEnum):
    """How the kernel's result is used."""

    LIVE = "live"
    """It is the input of the next operation, or the output."""
    UNUSED = "unused"
    """The kernel is launched, torch computes everything once more, and torch's result is returned."""
    DUMMY = "dummy"
    """Unused, too, and launched on one block only."""
    NONE = "none"
    """There is no kernel; torch does everything."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `old` by `new` once in the kernel's text: how a mistake gets into a draft."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Draft:
    """`steps[first:last]` run in the kernel. `intended` is the chain; `steps` differs from it if the draft is wrong."""

    intended: tuple[Step, ...]
    steps: tuple[Step, ...]
    cols: int
    first: int
    last: int
    use: Use = Use.LIVE
    block: int = 1024
    edit: Edit | None = None

    @property
    def fused(self) -> bool:
        return self.use is Use.LIVE and self.first == 0 and self.last == len(self.steps)

    def mended(self) -> Draft:
        """The draft with the same plan and without its mistakes."""
        whole = self.last == len(self.steps)
        last = len(self.intended) if whole else min(self.last, len(self.intended))
        first = min(self.first, last - 1)
        return replace(self, steps=self.intended, first=first, last=last, edit=None)

    def right(self) -> Draft:
        """The draft with one kernel for all operations and without mistakes."""
        return Draft(self.intended, self.intended, self.cols, 0, len(self.intended))


def fused_draft(source: str) -> Draft:
    """The right draft of a chain's reference text: one kernel for all operations. Raises ValueError if it is not a chain."""
    steps = parse(source)
    if steps is None:
        raise ValueError("not an elementwise chain: forward holds a line that is none of envs.chains.OPS")
    return Draft(steps, steps, columns(source), 0, len(steps))


def names(steps: tuple[Step, ...]) -> str:
    return ", ".join(step.op.name for step in steps)


def plan(draft: Draft) -> str:
    """The plan of a draft in one line: what the kernel does and what is left to torch."""
    if draft.use is Use.NONE:
        return "Plan: torch for all."
    if draft.use is Use.UNUSED:
        return "Plan: torch for all, beside a kernel."
    if draft.use is Use.DUMMY:
        return "Plan: torch for all, beside one block of a kernel."
    if draft.fused:
        return f"Plan: one kernel for {names(draft.intended)}."
    inside, outside = draft.steps[draft.first : draft.last], draft.steps[: draft.first] + draft.steps[draft.last :]
    return f"Plan: kernel for {names(inside)}; torch for {names(outside)}."


def code(draft: Draft) -> str:
    """The candidate's source."""
    parts = [_imports(draft)]
    if has_bias(draft.steps):
        parts.append(f"COLS = {draft.cols}\n")
    if draft.use is not Use.NONE:
        parts.append(_kernel(draft))
    parts.append(_module(draft))
    return "\n".join(parts)


def completion(draft: Draft, remark: str = "") -> str:
    """The whole answer: remark, plan and fenced code."""
    opening = f"{remark}\n" if remark else ""
    return f"{opening}{plan(draft)}\n```python\n{code(draft)}```"


def _imports(draft: Draft) -> str:
    torch_steps = draft.steps if draft.use is not Use.LIVE else draft.steps[: draft.first] + draft.steps[draft.last :]
    lines = ["import torch", "import torch.nn as nn"]
    if any("F." in step.torch for step in torch_steps):
        lines.append("import torch.nn.functional as F")
    if draft.use is not Use.NONE:
        lines += ["import triton", "import triton.language as tl"]
    return "\n".join(lines) + "\n"


def _kernel(draft: Draft) -> str:
    inside = draft.steps[draft.first : draft.last]
    parameters = "x_ptr, b_ptr, y_ptr, n, cols" if has_bias(inside) else "x_ptr, y_ptr, n"
    body = "".join(f"    {step.triton}\n" for step in inside)
    text = (
        f"@triton.jit\ndef kernel({parameters}, BLOCK: tl.constexpr):\n"
        "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    m = i < n\n"
        "    x = tl.load(x_ptr + i, mask=m)\n"
        f"{body}"
        "    tl.store(y_ptr + i, x, mask=m)\n"
    )
    return text if draft.edit is None else text.replace(draft.edit.old, draft.edit.new, 1)


def _module(draft: Draft) -> str:
    lines = ["class ModelNew(nn.Module):"]
    if has_bias(draft.steps):
        lines += [
            "    def __init__(self):",
            "        super().__init__()",
            "        self.bias = nn.Parameter(torch.randn(COLS))",
            "",
        ]
    lines.append("    def forward(self, x):")
    lines += [f"        {line}" for line in _forward(draft)]
    return "\n".join(lines) + "\n"


def _forward(draft: Draft) -> list[str]:
    before, inside = draft.steps[: draft.first], draft.steps[draft.first : draft.last]
    after = draft.steps[draft.last :]
    everything = [step.torch for step in draft.steps]
    if draft.use is Use.NONE:
        return [*everything, "return x"]
    operands = "x, self.bias, y, n, x.shape[1]" if has_bias(inside) else "x, y, n"
    grid = "1" if draft.use is Use.DUMMY else f"triton.cdiv(n, {draft.block})"
    launch = ["y = torch.empty_like(x)", "n = x.numel()", f"kernel[({grid},)]({operands}, BLOCK={draft.block})"]
    if draft.use in (Use.UNUSED, Use.DUMMY):
        return [*launch, *everything, "return x"]
    if not after:
        return [*(step.torch for step in before), *launch, "return y"]
    return [*(step.torch for step in before), *launch, "x = y", *(step.torch for step in after), "return x"]
