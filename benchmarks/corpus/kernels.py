"""Writers of kernel text: elementwise, row by row, and tiled matrix products, each in several designs and sizes.

A writer is a frozen value; `text` is its `@triton.jit` function and `launch` the statement in `forward` that starts it.
`pointers` and `scalars` map a parameter's name to the host expression that is passed for it; pointers get `_ptr` appended in the
kernel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent, indent

from rlkernel.types import Problem

HEADER = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
"""
MAX_PROGRAMS = 1056
"""The largest number of programs of a grid-stride loop: 8 for each multiprocessor of an H200."""


def block(text: str, depth: int) -> str:
    """`text` without its common indentation, indented by `depth` levels; empty text stays empty."""
    return indent(dedent(text).strip("\n"), "    " * depth) + "\n" if text.strip() else ""


def candidate(problem: Problem, kernels: str, forward: str) -> str:
    """The whole file: the reference's constants, the kernels, and ModelNew with the reference's parameters and signature."""
    constants = "".join(f"{line}\n" for line in re.findall(r"^[A-Z]+ = \d+$", problem.source, re.MULTILINE))
    found = re.search(r"(    def __init__\(self\):\n.*?)?    def forward\((.*?)\):", problem.source, re.DOTALL)
    if found is None:
        raise ValueError(f"{problem.name}: no `def forward(...)` on a line of its own")
    init, parameters = found[1] or "", found[2]
    body = f"class ModelNew(nn.Module):\n{init}    def forward({parameters}):\n{block(forward, 2)}"
    return f"{HEADER}\n{constants}\n{kernels}\n{body}"


def _signature(name: str, pointers: Mapping[str, str], scalars: Mapping[str, str], rest: str) -> str:
    parameters = ", ".join([*(f"{pointer}_ptr" for pointer in pointers), *scalars, rest])
    return f"@triton.jit\ndef {name}({parameters}):\n"


def _launch(name: str, grid: str, pointers: Mapping[str, str], scalars: Mapping[str, str], rest: str) -> str:
    return f"{name}[{grid}]({', '.join([*pointers.values(), *scalars.values(), rest])})\n"


@dataclass(frozen=True, slots=True)
class Flat:
    """One lane per element: `body` sees the index `i` and the mask `m`."""

    name: str
    pointers: Mapping[str, str]
    body: str
    scalars: Mapping[str, str] = field(default_factory=dict)
    count: str = "y.numel()"
    """Host expression: the number of elements, the kernel's `n`."""

    def text(self, *, strided: bool) -> str:
        head = _signature(self.name, self.pointers, self.scalars, "n, BLOCK: tl.constexpr")
        if strided:
            loop = "    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):\n"
            return f"{head}{loop}        i = start + tl.arange(0, BLOCK)\n        m = i < n\n{block(self.body, 2)}"
        return f"{head}    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    m = i < n\n{block(self.body, 1)}"

    def launch(self, size: int, warps: int, *, strided: bool) -> str:
        programs = f"triton.cdiv({self.count}, {size})"
        grid = f"(min({programs}, {MAX_PROGRAMS}),)" if strided else f"({programs},)"
        rest = f"{self.count}, BLOCK={size}, num_warps={warps}"
        return _launch(self.name, grid, self.pointers, self.scalars, rest)


@dataclass(frozen=True, slots=True)
class Reduce:
    """A scalar of the row: `name` is the sum or the maximum of `value` over its columns."""

    name: str
    kind: str
    """sum or max."""
    value: str

    @property
    def _identity(self) -> str:
        return "0.0" if self.kind == "sum" else 'float("-inf")'

    @property
    def _masked(self) -> str:
        return f"tl.where(m, {self.value}, {self._identity})"

    def registers(self) -> str:
        return f"    {self.name} = tl.{self.kind}({self._masked}, axis=0)\n"

    def looped(self, load: str) -> str:
        lanes = f"{self.name}_lanes"
        joined = f"{lanes} + {self._masked}" if self.kind == "sum" else f"tl.maximum({lanes}, {self._masked})"
        start = f"    {lanes} = tl.full((BLOCK,), {self._identity}, tl.float32)\n"
        return f"{start}{_columns(load + f'{lanes} = {joined}')}    {self.name} = tl.{self.kind}({lanes}, axis=0)\n"


def _columns(body: str) -> str:
    """A loop over the row's columns, BLOCK at a time."""
    loop = "    for start in range(0, cols, BLOCK):\n        c = start + tl.arange(0, BLOCK)\n        m = c < cols\n"
    return loop + block(body, 2)


@dataclass(frozen=True, slots=True)
class Rows:
    """One program per row. `load` sees `row`, the columns `c` and the mask `m`; `steps` are reductions and scalar lines; `each`
    stores per column, `last` per row. In registers the row is read once; looped it is read once per reduction
    and once for `each`."""

    name: str
    pointers: Mapping[str, str]
    load: str
    steps: tuple[Reduce | str, ...]
    each: str = ""
    last: str = ""
    scalars: Mapping[str, str] = field(default_factory=dict)
    rows: str = "x.shape[0]"
    cols: str = "x.shape[1]"

    def text(self, *, looped: bool) -> str:
        load, each = block(self.load, 0), block(self.each, 0)
        text = _signature(self.name, self.pointers, self.scalars, "cols, BLOCK: tl.constexpr") + "    row = tl.program_id(0)\n"
        if not looped:
            text += f"    c = tl.arange(0, BLOCK)\n    m = c < cols\n{block(load, 1)}"
        for step in self.steps:
            if isinstance(step, str):
                text += f"    {step}\n"
            else:
                text += step.looped(load) if looped else step.registers()
        if each:
            text += _columns(load + each) if looped else block(each, 1)
        return text + block(self.last, 1)

    def launch(self, size: int | None, warps: int) -> str:
        """size None: the whole row."""
        width = f"triton.next_power_of_2({self.cols})" if size is None else str(size)
        rest = f"{self.cols}, BLOCK={width}, num_warps={warps}"
        return _launch(self.name, f"({self.rows},)", self.pointers, self.scalars, rest)


@dataclass(frozen=True, slots=True)
class Tile:
    """Sizes of one program of a matrix product."""

    rows: int
    cols: int
    inner: int
    warps: int
    stages: int = 3

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols}x{self.inner} warps={self.warps} stages={self.stages}"


@dataclass(frozen=True, slots=True)
class Product:
    """`c[M, N] = epilogue(a[M, K] @ b[K, N])`, batched over the grid's third axis. `epilogue` sees `total`, `rows`, `cols` and
    `keep`. Accumulates in float32 with IEEE products, so that float32 problems keep their precision."""

    name: str
    a: str
    b: str
    c: str = "c"
    epilogue: str = ""
    pointers: Mapping[str, str] = field(default_factory=dict)
    batch: str = "1"

    _TEXT = """\
    a_ptr += tl.program_id(2) * M * K
    b_ptr += tl.program_id(2) * K * N
    c_ptr += tl.program_id(2) * M * N
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    cols = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        down = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows * K + down[None, :], mask=(rows < M) & (down[None, :] < K), other=0.0)
        b = tl.load(b_ptr + down[:, None] * N + cols, mask=(down[:, None] < K) & (cols < N), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    keep = (rows < M) & (cols < N)
"""

    def text(self) -> str:
        sizes = "M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr"
        head = _signature(self.name, {"a": self.a, "b": self.b, **self.pointers, "c": self.c}, {}, sizes)
        store = "    tl.store(c_ptr + rows * N + cols, total.to(c_ptr.dtype.element_ty), mask=keep)\n"
        return head + self._TEXT + block(self.epilogue, 1) + store

    def launch(self, tile: Tile) -> str:
        """The host has `m`, `n` and `k`."""
        sizes = f"m, n, k, BM={tile.rows}, BN={tile.cols}, BK={tile.inner}, num_warps={tile.warps}, num_stages={tile.stages}"
        grid = f"(triton.cdiv(m, {tile.rows}), triton.cdiv(n, {tile.cols}), {self.batch})"
        return _launch(self.name, grid, {"a": self.a, "b": self.b, **self.pointers, "c": self.c}, {}, sizes)
