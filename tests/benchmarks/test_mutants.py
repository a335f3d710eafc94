"""Mutants of honest kernels: what each kind makes of a line, draws, the controls, and one run of the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpus import Case
from benchmarks.mutants import __main__ as command
from benchmarks.mutants import controls
from benchmarks.mutants.controls import Told, variations, with_inputs, with_sizes
from benchmarks.mutants.draw import Mutant, draft_cases, draw, honest, mutants, tells
from benchmarks.mutants.kinds import KINDS
from benchmarks.mutants.report import by_kind, classed
from rlkernel.reference_text import apply_small
from tests.red_team import cases as red_team

PROBLEM = red_team.relu()
LINES: dict[str, tuple[str, list[str]]] = {
    "load without mask": ("x = tl.load(p + i, mask=i < n, other=0.0)", ["x = tl.load(p + i)"]),
    "store without mask": ("tl.store(p, x, mask=m)", ["tl.store(p, x)"]),
    "other changed": ("x = tl.load(p, mask=m, other=0.0)", ["x = tl.load(p, mask=m, other=1.0)"]),
    "other left out": ("x = tl.load(p, mask=m, other=0.0)", ["x = tl.load(p, mask=m)"]),
    "bound by one": ("m = i < n", ["m = (i <= n)"]),
    "bound dropped": ("m = (i < n) & (j < k)", ["m = (i < n)", "m = (j < k)"]),
    "limit by one": ("m = i < n", ["m = (i < n - 1)", "m = (i < n + 1)"]),
    "address by one": ("x = tl.load(p + i)", ["x = tl.load(p + i + 1)"]),
    "factor of an address dropped": ("p = row * stride + i", ["p = row + i"]),
    "program's axis": ("a = tl.program_id(0)", ["a = tl.program_id(1)"]),
    "axis of a reduction": ("y = tl.sum(x, axis=1)", ["y = tl.sum(x, axis=0)"]),
    "rows for columns": ("y = x[:, None]", ["y = x[None, :]"]),
    "indices by one": ("i = tl.arange(0, N)", ["i = (tl.arange(0, N) + 1)"]),
    "first turn left out": ("for k in range(0, n, B): pass", ["for k in range(B, n, B): pass"]),
    "last turn left out": ("for k in range(n): pass", ["for k in range(0, n - 1, 1): pass"]),
    "one turn more": ("for k in range(a, n): pass", ["for k in range(a, n + 1, 1): pass"]),
    "rounded down": ("n = tl.cdiv(a + b, c)", ["n = ((a + b) // c)"]),
    "quotient for rest": ("a = i // n", ["a = (i % n)"]),
    "strides swapped": ("p = base + i * s + j * t", ["p = (base + i * t + j * s)"]),
    "atomic for plain": ("tl.atomic_add(p, x, mask=m, sem='relaxed')", ["tl.store(p, x, mask=m)"]),
    "barrier dropped": ("tl.debug_barrier()", ["pass"]),
    "one program stores nothing": (
        "tl.store(p, x)", ["if tl.program_id(0) != tl.num_programs(0) - 1: tl.store(p, x)"],
    ),
    "operator": ("y = (a + b) / c", ["y = ((a + b) * c)", "y = ((a - b)) / c"]),
    "function": ("y = tl.exp(x)", ["y = tl.exp2(x)"]),
    "operands swapped": ("y = a - b", ["y = (b - a)"]),
    "term dropped": ("y = a + b", ["y = a"]),
    "scale dropped": ("y = a * 0.5", ["y = a"]),
    "branches of where swapped": ("y = tl.where(c, a, b)", ["y = tl.where(c, b, a)"]),
    "where decided": ("y = tl.where(c, a, b)", ["y = a"]),
    "clamp dropped": ("y = tl.maximum(x, 0)", ["y = x", "y = 0"]),
    "constant by 1 %": ("y = x + 0.5", ["y = x + 0.505"]),
    "constant doubled": ("y = x + 0.5", ["y = x + 1.0"]),
    "whole number by one": ("y = x + 3", ["y = x + 4"]),
    "eps dropped": ("y = x + 1e-5", ["y = x + 0.0"]),
    "eps enlarged": ("y = tl.rsqrt(v + eps)", ["y = tl.rsqrt((v + 100 * eps))"]),
    "cast dropped": ("y = x.to(tl.float32)", ["y = x"]),
    "half for float": ("t = tl.float32", ["t = tl.float16", "t = tl.bfloat16"]),
    "value rounded to half": ("tl.store(p, x)", ["tl.store(p, x.to(tl.bfloat16))"]),
    "precision of a product": (
        "y = tl.dot(a, b, input_precision='ieee')", ["y = tl.dot(a, b)", "y = tl.dot(a, b, input_precision='tf32')"],
    ),
    "neutral element of a sum": ("y = tl.zeros((4,), dtype=t)", ["y = tl.full((4,), 1, dtype=t)"]),
    "neutral element of a maximum": ("y = -float('inf')", ["y = -0.0", "y = -10.0"]),
    "assigned for accumulated": ("y += x * 2", ["y = x * 2"]),
    "accumulation dropped": ("y += x", ["pass"]),
    "accumulator of a product dropped": ("y = tl.dot(a, b, acc)", ["y = tl.dot(a, b)"]),
    "maximum for sum": ("y = tl.sum(x, axis=0)", ["y = tl.max(x, axis=0)"]),
    "rounding dropped": ("y = tl.floor(x)", ["y = x"]),
    "sign dropped": ("y = -x", ["y = x"]),
    "transposition dropped": ("y = tl.trans(x)", ["y = x"]),
    "a program fewer": ("n = triton.cdiv(a, b)", ["n = (triton.cdiv(a, b) - 1)"]),
    "a program more": ("n = triton.cdiv(a, b)", ["n = (triton.cdiv(a, b) + 1)"]),
    "grid rounded down": ("n = triton.cdiv(a, b)", ["n = (a // b)"]),
    "axes of a grid swapped": ("kernel[(a, b)](x)", ["kernel[b, a](x)"]),
    "another stride": ("f(x.stride(0), x.shape[1])", ["f(x.stride(1), x.shape[1])", "f(x.stride(0), x.shape[0])"]),
    "block halved": ("kernel[(a,)](x, BLOCK=64)", ["kernel[a,](x, BLOCK=32)"]),
    "block doubled": ("kernel[(a,)](x, BLOCK=64)", ["kernel[a,](x, BLOCK=128)"]),
    "arguments swapped": ("kernel[(a,)](x, y)", ["kernel[a,](y, x)"]),
    "memory not cleared": ("y = torch.zeros(4)", ["y = torch.empty(4)"]),
    "layout ignored": ("y = x.contiguous()", ["y = x"]),
    "number of the host by 1 %": ("f(x, 0.5)", ["f(x, 0.505)"]),
    "launch left out": ("kernel[(a,)](x)", ["pass"]),
}  # fmt: skip
"""Kind -> a line, and what it becomes."""
KERNEL = """import torch, triton
import torch.nn as nn
import triton.language as tl

@triton.jit
def relu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, tl.maximum(x, 0.0), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""


def of_line(line: str, place: str) -> list[Mutant]:
    decorator = "@triton.jit\n" if place == "kernel" else ""
    return mutants(Case(PROBLEM, "a line", f'{decorator}def f(x: tl.float32):\n    """-x + 0.5"""\n    {line}\n'))


def test_every_kind_has_a_line() -> None:
    assert sorted(LINES) == sorted(KINDS) and len(KINDS) >= 45
    assert all(one.change.__doc__ for one in KINDS.values())


@pytest.mark.parametrize("name", LINES)
def test_a_kind_changes_its_line_and_nothing_else(name: str) -> None:
    line, wanted = LINES[name]
    kind = KINDS[name]
    found = [one for one in of_line(line, kind.place) if one.kind == name]
    assert [one.after for one in found] == wanted
    assert all(one.before == line and one.line == found[0].line for one in found)
    assert all(one.code == one.of.code.replace(line, one.after) for one in found)
    other = "host" if kind.place == "kernel" else "kernel"
    assert not [one for one in of_line(line, other) if one.kind == name]


def test_a_mutant_that_says_the_same_tells_nothing() -> None:
    case = Case(PROBLEM, "a", "def f(x):\n    pass\n")
    assert not tells(Mutant(case, "operator", 2, "pass", "pass  # b", "def f(x):\n    pass  # b\n"))
    assert not tells(Mutant(case, "operator", 2, "pass", "pass )", "def f(x):\n    pass )\n"))
    assert tells(Mutant(case, "operator", 2, "pass", "return", "def f(x):\n    return\n"))


def test_draws_take_kinds_in_turn_and_longer_ones_begin_with_shorter_ones() -> None:
    cases = [Case(PROBLEM, "relu", KERNEL)]
    drawn = draw(cases, 1000, seed=3)
    kinds = [one.kind for one in drawn]
    assert len(kinds) > 30 and len(set(kinds[: len(set(kinds))])) == len(set(kinds))
    assert draw(cases, 12, seed=3) == drawn[:12] and draw(cases, 12, seed=4) != drawn[:12]
    assert len({one.digest for one in drawn}) == len(drawn)
    assert {one.kind for one in draw(cases, 1000, seed=3, part="mask")} == {"load without mask", "store without mask"}


def test_every_honest_candidate_has_mutants() -> None:
    cases = honest("cpu")
    assert len(cases) > 300 and sum(not mutants(one) for one in cases) == 0
    drafts = draft_cases(0)
    assert len(drafts) > 400 and draft_cases(0)[:3] == drafts[:3]


def test_controls_change_inputs_and_sizes() -> None:
    source = "import torch\ndef get_inputs():\n    return [torch.zeros(2), torch.ones(1, dtype=torch.int64), 7]\n"
    space: dict[str, Any] = {}
    exec(with_inputs(replace(PROBLEM, source=source), "x + 3").source, space)
    first, second, third = space["get_inputs"]()
    assert (first.tolist(), second.tolist(), third) == ([3.0, 3.0], [1], 7)
    sized = replace(PROBLEM, source='N, M = 4096, 40\nSMALL = {"N": 96, "M": 24}\n')
    grown = with_sizes(sized, 2)
    assert grown is not None and apply_small(grown.source).startswith("N, M = (192, 40)")
    assert with_sizes(replace(PROBLEM, source="N = 4\n"), 2) is None
    assert list(variations(sized, longer=True))[-1] == "2 x sizes" and "2 x sizes" not in variations(sized, longer=False)


def test_classes() -> None:
    agrees, silent, differs = Told("again", True), Told("far inputs", None), Told("2 x sizes", False, "incorrect: wrong")
    assert classed(None, []) == "failed" and classed(False, []) == "refused"
    assert classed(True, [agrees, silent]) == "same" and classed(True, [agrees, silent, differs]) == "differs"
    assert classed(True, [silent]) == "untold"
    rows = [{"kind": "a", "class": "refused"}, {"kind": "b", "class": "differs"}, {"kind": "b", "class": "refused"}]
    assert list(by_kind(rows)) == ["b", "a"] and by_kind(rows)["b"] == {"differs": 1, "refused": 1}


def test_the_command_tells_what_differs_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inputs between 0 and 1 never reach the limit of -500, so a kernel without it is accepted. A control far away tells."""
    reference = (
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.clamp(x, min=-500.0)\n\n\n"
        "def get_inputs():\n    return [torch.rand(512)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    code = KERNEL.replace("tl.maximum(x, 0.0)", "tl.maximum(x, -500.0)")
    case = Case(replace(PROBLEM, source=reference), "limited", code)
    monkeypatch.setattr(command, "candidates", lambda *_: [case])
    monkeypatch.setattr(controls, "DATA", {"far inputs": "x - 1000"})
    out = tmp_path / "rows.jsonl"
    words = ["--count", "9", "--device", "cpu", "--jobs", "2", "--out", str(out)]
    assert command.main([*words, "--kinds", "clamp"]) == 1
    rows = {row["after"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert {after: row["class"] for after, row in rows.items()} == {
        "tl.store(y_ptr + i, x, mask=i < n)": "differs",
        "tl.store(y_ptr + i, (-500.0), mask=i < n)": "refused",
    }
    told = rows["tl.store(y_ptr + i, x, mask=i < n)"]["controls"]
    assert [(one["control"], one["agrees"]) for one in told] == [("again", True), ("far inputs", False)]
    assert command.main([*words, "--kinds", "clamp"]) == 1
    assert len(out.read_text().splitlines()) == 2, "a row that is there is not made again"
    assert command.main([*words, "--kinds", "other left out"]) == 0
    assert json.loads(out.read_text().splitlines()[2])["class"] == "same"
    printed = capsys.readouterr().out
    assert "differs: clamp dropped, limited line 9" in printed and "+ tl.store(y_ptr + i, x, mask=i < n)" in printed
