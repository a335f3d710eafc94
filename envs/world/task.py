"""A task as a value: operations, sizes and dtype; its text in KernelBench's format; its least time and its eager time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from envs.world.ops import Kind, Op, Step
from rlkernel.evaluator.devices import H200
from rlkernel.types import Problem, Split

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
Sizes = tuple[tuple[str, int], ...]
"""Names of dimensions with their sizes, in the order of the input's axes, and N last."""

_TEMPLATE = '''"""{title}."""
import torch
import torch.nn as nn
import torch.nn.functional as F

# An H200 needs at least {floor:.0f} us.
{sizes}SMALL = {small}

class Model(nn.Module):
{init}    def forward(self, {arguments}):
{body}
        return x

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
'''


@dataclass(frozen=True)
class Task:
    """Operations one after the other on one input `x`, whose last axis is the row."""

    family: str
    steps: tuple[Step, ...]
    sizes: Sizes
    small: Sizes
    dtype: str = "float32"

    @cached_property
    def name(self) -> str:
        """The problem's name, which starts with its family."""
        names = "_".join("_".join([step.op.name, *step.constants]) for step in self.steps)
        sizes = "x".join(str(size) for _, size in self.sizes)
        return f"level{1 if len(self.steps) == 1 else 2}/{self.family}_{names}_{sizes}_{SHORT[self.dtype]}"

    @property
    def composition(self) -> tuple[str, ...]:
        """The names of the operations, without constants, sizes and dtype."""
        return tuple(step.op.name for step in self.steps)

    @property
    def half(self) -> bool:
        return self.dtype != "float32"

    @property
    def core(self) -> int | None:
        """The place of the first operation that is not elementwise; None in a chain."""
        return next((k for k, step in enumerate(self.steps) if step.op.kind is not Kind.ELEMENT), None)

    def size(self, name: str, *, small: bool = False) -> int:
        return dict(self.small if small else self.sizes)[name]

    def shape(self, k: int) -> tuple[str, ...]:
        """The names of the axes before step k."""
        axes = self.input_axes
        for step in self.steps[:k]:
            axes = _after(step.op, axes)
        return axes

    @property
    def input_axes(self) -> tuple[str, ...]:
        """The axes of `x`: all sizes but N, which belongs to the second factor of a product."""
        return tuple(name for name, _ in self.sizes if name != "N")

    def numbers(self, k: int, *, small: bool = False) -> tuple[int, ...]:
        """The shape before step k."""
        axes = [self.size(name, small=small) if name != "OUT" else 0 for name in self.shape(k)]
        if axes and not axes[-1]:
            window = next(int(step.constants[0]) for step in self.steps[:k] if step.op.kind is Kind.POOL)
            axes[-1] = self.size("COLS", small=small) // window
        return tuple(axes)

    def last(self, k: int, *, small: bool = False) -> int:
        """The size of the last axis before step k."""
        return self.numbers(k, small=small)[-1]

    def elements(self, k: int, *, small: bool = False) -> int:
        """The number of elements before step k."""
        found = 1
        for size in self.numbers(k, small=small):
            found *= size
        return found

    def product_flops(self) -> float:
        """Operations of the matrix products; a multiply-add counts as two."""
        pairs = [(self.elements(k + 1), self.last(k)) for k, s in enumerate(self.steps) if s.op.kind is Kind.PRODUCT]
        return sum(2.0 * made * inner for made, inner in pairs)

    def parameters(self) -> dict[str, str]:
        """Parameter -> its shape as text, in the order of use."""
        found = {}
        for k, step in enumerate(self.steps):
            if step.op.vector:
                found[step.op.vector] = self.shape(k)[-1]
            elif step.op.name in ("matmul", "linear"):
                found["w"] = "K, N" if step.op.name == "matmul" else "N, K"
        return found

    def inputs(self) -> dict[str, str]:
        """Argument of forward -> its shape as text."""
        found = {"x": ", ".join(self.input_axes)}
        for k, step in enumerate(self.steps):
            if step.op.tensor:
                found[step.op.tensor] = ", ".join(self.shape(k))
            elif step.op.name == "bmm":
                found["w"] = "B, K, N"
        return found

    @cached_property
    def source(self) -> str:
        """The reference file."""
        kind = f", dtype=torch.{self.dtype}" if self.half else ""
        lines = "".join(
            f"        self.{name} = nn.Parameter(torch.randn({shape}{kind}){' * K ** -0.5' if name == 'w' else ''})\n"
            for name, shape in self.parameters().items()
        )
        init = f"    def __init__(self):\n        super().__init__()\n{lines}\n" if lines else ""
        return _TEMPLATE.format(
            title=", ".join(self.composition).replace("_", " ").capitalize(),
            floor=self.floor_us(),
            sizes="".join(f"{name} = {size}\n" for name, size in self.sizes),
            small="{" + ", ".join(f'"{name}": {size}' for name, size in self.small) + "}",
            init=init,
            arguments=", ".join(self.inputs()),
            body="\n".join(f"        {step.torch}" for step in self.steps),
            inputs=", ".join(f"torch.randn({shape}{kind})" for shape in self.inputs().values()),
        )

    def problem(self, split: Split = "train") -> Problem:
        return Problem(self.name, 1 if len(self.steps) == 1 else 2, split, self.source)

    def _operand_bytes(self) -> float:
        """Bytes of the second factors and second inputs, each once."""
        found = 0.0
        for k, step in enumerate(self.steps):
            if step.op.tensor:
                found += self.elements(k)
            elif step.op.kind is Kind.PRODUCT:
                batch = self.size("B") if step.op.name == "bmm" else 1
                found += batch * self.last(k) * self.last(k + 1)
        return found * BYTES[self.dtype]

    def floor_us(self) -> float:
        """Microseconds that an H200 needs at least: every input read and the output written once, and the products."""
        moved = (self.elements(0) + self.elements(len(self.steps))) * BYTES[self.dtype] + self._operand_bytes()
        rate = H200.matrix_flops_per_us["bf16" if self.half else "tf32"]
        return max(moved / H200.dram_bytes_per_us, self.product_flops() / rate)

    def eager_us(self) -> float:
        """Modelled microseconds of the reference on an H200, operator by operator: what sizes are chosen by."""
        total = 0.0
        for k, step in enumerate(self.steps):
            moved = step.op.traffic * self.elements(k) * BYTES[self.dtype]
            arithmetic = 0.0
            if step.op.kind is Kind.PRODUCT:
                rate = H200.matrix_flops_per_us["bf16"] if self.half else H200.fp32_flops_per_us
                arithmetic = 2.0 * self.elements(k + 1) * self.last(k) / (0.8 * rate)
                moved = (self.elements(k) + self.elements(k + 1)) * BYTES[self.dtype]
            total += step.op.launches * H200.launch_us + max(moved / H200.dram_bytes_per_us, arithmetic)
        return total + self._operand_bytes() / H200.dram_bytes_per_us


def _after(op: Op, axes: tuple[str, ...]) -> tuple[str, ...]:
    """The axes after an operation."""
    if op.kind is Kind.FOLD:
        return axes[:-1]
    if op.kind is Kind.COLUMN:
        return axes[1:]
    if op.kind is Kind.PRODUCT:
        return (*axes[:-1], "N")
    return (*axes[:-1], "OUT") if op.kind is Kind.POOL else axes
