"""What a kernel is linked with: pieces of CUDA's library that make the same code as all of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from triton._C.libtriton import ir, llvm, nvidia
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend

from rlkernel.evaluator.compile import libdevice

TRIPLE, ARCH, FEATURES = "nvptx64-nvidia-cuda", "sm_90a", "+ptx83"
PATH = str(make_backend(GPUTarget("cuda", 90, 32)).parse_options({}).extern_libs[0][1])
NAMES = ("erff", "tanhf", "powf", "sinf", "cosf", "log1pf", "erfinvf", "lgammaf", "j0f", "fmodf", "rsqrtf", "expm1f")
"""Functions of one or two floats: with tables (sinf), with loops, and with calls of others (lgammaf)."""


def code(names: tuple[str, ...], link: Callable[[Any, list[str]], None]) -> str:
    """The PTX of a kernel that calls these functions one after another and stores each result."""
    takes = {name: ", ".join(["f32"] * arity(name)) for name in names}
    given = {name: ", ".join(["%a", "%b"][: arity(name)]) for name in names}
    text = "".join(f"llvm.func @__nv_{name}({takes[name]}) -> f32\n" for name in names)
    body = "".join(
        f"%r{i} = llvm.call @__nv_{name}({given[name]}) : ({takes[name]}) -> f32\n"
        f"llvm.store volatile %r{i}, %o : f32, !llvm.ptr<1>\n"
        for i, name in enumerate(names)
    )
    text += f"llvm.func @kernel(%o: !llvm.ptr<1>, %a: f32, %b: f32) attributes {{nvvm.kernel}} {{\n{body}llvm.return\n}}\n"
    llvm.init_targets()
    dialects, context = ir.context(), llvm.context()
    ir.load_dialects(dialects)
    nvidia.load_dialects(dialects)
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        module = llvm.to_module(ir.parse_mlir_module(file.name, dialects), context)
    nvidia.set_short_ptr()
    llvm.attach_datalayout(module, TRIPLE, ARCH, FEATURES)
    nvidia.set_nvvm_reflect_ftz(module)
    link(module, [PATH])
    llvm.optimize_module(module, llvm.OPTIMIZE_O3)
    return str(llvm.translate_to_asm(str(module), TRIPLE, ARCH, FEATURES, ["nvptx-mad-wide-opt"], True, False))


def arity(name: str) -> int:
    return 2 if name in ("powf", "fmodf") else 1


@pytest.mark.parametrize("names", [*((name,) for name in NAMES), NAMES])
def test_a_kernel_that_is_linked_with_pieces_has_the_same_code(names: tuple[str, ...]) -> None:
    whole = code(names, libdevice._link)
    assert code(names, libdevice._link_needed) == whole
    assert "call.uni" not in whole  # everything was inlined


def test_every_function_of_the_library_that_the_language_names_has_a_piece() -> None:
    library = libdevice.library(PATH)
    functions = [name for name in library.parts if name.startswith("__nv_")]
    assert len(functions) > 250
    assert all(library.text([name]) is not None for name in functions)
    assert library.text(["__nv_erff", "__nv_unheard_of"]) is None
    small = library.text(["__nv_erff"])
    assert small is not None and len(small) < 12_000


def test_what_has_no_piece_is_linked_with_the_whole_library(monkeypatch: pytest.MonkeyPatch) -> None:
    linked: list[list[str]] = []
    monkeypatch.setattr(libdevice, "_link", lambda module, paths: linked.append(list(paths)))
    monkeypatch.setattr(libdevice, "library", lambda path: libdevice.Library({}, "", {}))

    class Module:
        def get_functions(self) -> list[Any]:
            return [Declared()]

    class Declared:
        name = "__nv_unheard_of"

        def is_declaration(self) -> bool:
            return True

    with libdevice.linked_in_pieces():
        llvm.link_extern_libs(Module(), ["/somewhere/libdevice.bc"])
        llvm.link_extern_libs(Module(), ["/one.bc", "/another.bc"])
    assert linked == [["/somewhere/libdevice.bc"], ["/one.bc", "/another.bc"]]
