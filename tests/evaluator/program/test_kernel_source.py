"""Kernel text is checked before anything compiles or interprets it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from rlkernel.evaluator.program.kernel_source import KernelSet
from rlkernel.evaluator.program.kernel_text import KernelRejected, canonical
from rlkernel.evaluator.program.schema import Function, Program
from rlkernel.evaluator.program.values import LibraryRef, ModuleRef, TlDtype, Unknown

TL = {"tl": ModuleRef("triton.language")}


def build(source: str, bindings: dict[str, Any] | None = None) -> Any:
    function = Function("k", source, 10, TL if bindings is None else bindings)
    return KernelSet(Program((function,), (), (), {}, (), (), None), lambda fn, f: fn).get(0)


def body(*lines: str) -> str:
    return "def k(x, n, B: tl.constexpr):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    "lines",
    [
        ("i = tl.program_id(0) * B + tl.arange(0, B)", "tl.store(x + i, tl.load(x + i, mask=i < n).to(tl.float32), mask=i < n)"),
        ("a = tl.zeros((B,), dtype=tl.float32)", "for j in range(0, n, B):", "    a += tl.sum(a, axis=0)"),
        ("if n > 3:", "    tl.store(x, 1)", "else:", "    tl.store(x, tl.math.exp(2.0))"),
        ("a = x.shape[0]", "b = x.dtype.element_ty", "tl.static_assert(B > 1)"),
        ("for j in tl.static_range(4):", "    tl.atomic_add(x + j, j)"),
    ],
)
def test_ordinary_kernels_pass(lines: tuple[str, ...]) -> None:
    build(body(*lines))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import os", "may not use import"),
        ("open('/etc/passwd')", "name 'open' is not defined"),
        ("__import__('os')", "may not use __import__"),
        ("x.__class__", "no attribute '__class__'"),
        ("x.handle", "no attribute 'handle'"),
        ("tl.core.inspect.os.system('id')", "may not use triton.language.core.inspect"),
        ("tl.core.builtins", "may not use triton.language.core.builtins"),
        ("tl.__builtins__", "may not use .__builtins__"),
        ("(lambda: 0)()", "may not use lambda"),
        ("[y for y in (1, 2) if y]", "comprehension may not filter"),
        ("a = f'{B:>9}'", "f-string may not format"),
        ("f'{x.__class__}'", "has no attribute '__class__'"),
        ("global q", "may not use global"),
        ("del x", "may not use delete"),
        ("exit(0)", "name 'exit' is not defined"),
        ("eval('1')", "name 'eval' is not defined"),
        ("getattr(x, 'handle')", "may not use getattr"),
        ("'{0.handle}'.format(x)", "no attribute 'format'"),
    ],
)
def test_host_code_in_a_kernel_is_refused_with_its_line(line: str, message: str) -> None:
    with pytest.raises(KernelRejected, match=message) as caught:
        build(body("tl.store(x, 0)", line))
    assert caught.value.line == 12  # `def` stands on line 10 of the candidate, the statement two lines below


@pytest.mark.parametrize("line", ["tl.nope(x)", "tl.libdevice.floor(x)", "tl.math.nope.deeper(x)", "nope(x)", "nope.deeper(x)"])
def test_a_name_that_there_is_not_is_left_to_triton_which_fails_where_it_is_compiled(line: str) -> None:
    build(body("if B == 0:", f"    {line}", "tl.store(x, 0)"))


@pytest.mark.parametrize("line", ["nope.__class__", "tl.nope._hidden()", "nope.a.__dict__"])
def test_nothing_of_python_hides_behind_a_name_that_there_is_not(line: str) -> None:
    with pytest.raises(KernelRejected, match=r"no attribute|may not use"):
        build(body(line))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def k(x):\n    pass\nimport os\n", "not one function"),
        ("@print\ndef k(x):\n    pass\n", "plain parameters only"),
        ("def k(*x):\n    pass\n", "plain parameters only"),
        ("def k(x=print(1)):\n    pass\n", "default must be a constant or its name"),
        ("def other(x):\n    pass\n", "not one function"),
        ("def k(x:\n", "does not parse"),
        ("x = 1\n", "not one function"),
    ],
)
def test_text_that_is_not_one_plain_function(source: str, message: str) -> None:
    with pytest.raises(KernelRejected, match=message):
        build(source)


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        (ModuleRef("os"), "may not use module os"),
        (ModuleRef("torch.nn"), "may not use module torch.nn"),
        (LibraryRef("triton.runtime.driver", "driver"), "may not use triton.runtime.driver.driver"),
        (LibraryRef("triton.language", "__builtins__"), "may not use"),
        (Unknown(), "not a constant"),
        (TlDtype("handle"), "no dtype handle"),
    ],
)
def test_bindings_resolve_to_triton_only(binding: Any, message: str) -> None:
    with pytest.raises(KernelRejected, match=message):
        build("def k(x):\n    tl.store(x, y)\n", {**TL, "y": binding})


@pytest.mark.parametrize("module", ["torch", "numpy"])
def test_of_torch_and_numpy_a_kernel_sees_numbers_alone(module: str) -> None:
    bindings = {**TL, "m": ModuleRef(module)}
    built = build("def k(x):\n    tl.store(x, -m.inf + m.pi)\n", bindings)
    seen = {name: value for name, value in vars(built.__globals__["m"]).items() if not name.startswith("__")}
    limits = {name: seen.pop(name) for name in list(seen) if isinstance(seen[name], (torch.dtype, type))}
    assert sorted(seen) == ["e", "inf", "nan", "pi"] and {type(value) for value in seen.values()} == {float}
    assert {"finfo", "iinfo", "float32", "int64"} <= set(limits) if module == "torch" else not limits
    for name in ("load", "save", "ones", "__loader__"):
        with pytest.raises(KernelRejected, match=f"may not use .*{name}"):
            build(f"def k(x):\n    tl.store(x, m.{name})\n", bindings)


def test_limits_of_a_dtype_are_those_that_triton_finds_while_it_compiles() -> None:
    bindings = {**TL, "torch": ModuleRef("torch")}
    lines = ("tl.store(x, -torch.finfo(torch.float32).max)", "tl.store(x + 1, torch.iinfo(torch.int64).min)")
    build(body(*lines, "tl.store(x + 2, torch.finfo(torch.float16).eps)"), bindings)
    with pytest.raises(KernelRejected, match="no attribute '__class__'"):
        build(body("tl.store(x, torch.finfo(torch.float32).__class__)"), bindings)
    with pytest.raises(KernelRejected, match=r"may not use numpy\.finfo"):  # its numbers are no numbers of Triton's
        build(body("tl.store(x, m.finfo(m.float32).max)"), {**TL, "m": ModuleRef("numpy")})


def test_annotations_are_text_and_never_evaluated() -> None:
    kernel = build("def k(x: print('pwned'), B: tl.constexpr):\n    tl.store(x, B)\n")
    assert kernel.__annotations__ == {"B": "tl.constexpr"}


def test_parameters_in_order() -> None:
    function = Function("k", "def k(x, n: tl.int64, B: tl.constexpr):\n    pass\n", 1, {})
    assert canonical(function).parameters == {"x": "", "n": "tl.int64", "B": "tl.constexpr"}


def test_text_is_written_anew_without_strings_that_span_lines_and_keeps_its_lines() -> None:
    docstring = '    """\ndef e(x):\n    pass\n"""\n\n    # a comment\n'
    source = "def k(x, y):\n" + docstring + "    tl.store(x,\n             1)\n    if y:\n        'text'\n"
    kernel = canonical(Function("k", source, 10, TL))
    assert kernel.text == "def k(x, y):\n    tl.store(x, 1)\n    if y:\n        pass\n"
    assert kernel.lines == {1: 10, 2: 17, 3: 19, 4: 20}


def test_names_that_tritons_compiler_finds_behind_an_unbound_local_are_refused() -> None:
    with pytest.raises(KernelRejected, match="may not use getattr"):
        build(body("if B == 0:", "    getattr = 0", "getattr(tl.core, 'builtins')"))


def test_the_interpreter_gives_no_meaning_to_a_name_that_triton_does_not_have() -> None:
    code = (
        "import importlib\n"
        "from rlkernel.evaluator.program.kernel_rules import _PRESENT\n"
        "from rlkernel.evaluator.cpu.interpreter import Interpreter\n"
        "from rlkernel.evaluator.program.schema import Program\n"
        "Interpreter(Program((), (), (), {}, (), (), None))\n"  # patches Triton's modules
        "print(sum(len(set(dir(importlib.import_module(m))) - known) for m, known in _PRESENT.items()))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"


@pytest.mark.parametrize("line", ["triton.knobs.os.listdir('/')", "tl.core.inspect.os.getcwd()", "k.nothing", "k(x, n, B)"])
def test_a_name_that_is_there_for_annotations_alone_is_not_left_to_triton(line: str) -> None:
    with pytest.raises(KernelRejected, match="is not defined in the kernel"):
        build(body(line), {})  # the candidate's file calls these modules something else


def test_a_part_of_triton_that_may_be_imported_later_is_not_left_to_triton() -> None:
    with pytest.raises(KernelRejected, match=r"may not use triton\.profiler"):
        build(body("triton.profiler.os.system('id')"), {"triton": ModuleRef("triton")})
