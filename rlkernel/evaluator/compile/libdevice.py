"""CUDA's library of mathematical functions, in pieces: a kernel is linked with what it calls, and the rest is not read again.

Triton reads all 470 kB of the library for each kernel that calls one function of it, which takes a quarter of such a kernel's
compilation. Here it is read once per fork server, as LLVM's text. What is linked, and so the binary, is the same to the byte.
"""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from triton._C.libtriton import ir, llvm
from triton.language.extra.cuda import libdevice

_NAME = re.compile(r"__nv_\w+")
_PARTS = (
    re.compile(r"^@([\w.$]+) = .*\n", re.M),
    re.compile(r"^declare .*?@([\w.$]+)\(.*\n", re.M),
    re.compile(r"^define .*?@([\w.$]+)\(.*?^}\n", re.M | re.S),
)
"""Tables, functions that LLVM itself knows, and functions that are written here."""
_COMMON = re.compile(r"^(?:attributes #|![\w.]+ = |%[\w.]+ = type ).*\n", re.M)
_MENTIONED = re.compile(r"@([\w.$]+)")
_link = llvm.link_extern_libs


@dataclass(frozen=True, slots=True)
class Library:
    """A library of LLVM's, as text."""

    parts: dict[str, str]
    """The name of a function or table -> its definition, or its declaration where LLVM itself knows it."""
    common: str
    """The types, attributes and metadata that definitions refer to."""
    places: dict[str, int]
    """Name -> its place among the parts. To walk through all parts would copy the pages that they lie in for each child."""

    def text(self, names: Sequence[str]) -> str | None:
        """The text of a library of these functions and what they need; None if one of them is not here."""
        found: dict[str, str] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            if name not in self.parts:
                return None
            found[name] = self.parts[name]
            waiting += _MENTIONED.findall(found[name])
        return self.common + "".join(found[name] for name in sorted(found, key=self.places.__getitem__))


@functools.cache
def library(path: str) -> Library:
    """The library in a file of bitcode, as far as Triton's language can name its functions."""
    found, context = ir.context(), llvm.context()
    ir.load_dialects(found)
    names = sorted(set(_NAME.findall(Path(libdevice.__file__).read_text())))
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write("".join(f"llvm.func @{name}()\n" for name in names))
        file.flush()
        module = llvm.to_module(ir.parse_mlir_module(file.name, found), context)
    _link(module, [path])
    text = re.sub(r"^define internal ", "define ", str(module), flags=re.M)
    parts = {match.group(1): match.group() for kind in _PARTS for match in kind.finditer(text)}
    return Library(parts, "".join(_COMMON.findall(text)), {name: place for place, name in enumerate(parts)})


def _link_needed(module: Any, paths: Sequence[str]) -> None:
    """Link what a module calls of one library; all of it where there are several, or where a function is not known here."""
    needed = [function.name for function in module.get_functions() if function.is_declaration()]
    text = library(paths[0]).text([name for name in needed if _NAME.match(name)]) if len(paths) == 1 else None
    if text is None:
        _link(module, paths)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".ll") as file:
        file.write(text)
        file.flush()
        _link(module, [file.name])


@contextmanager
def linked_in_pieces() -> Iterator[None]:
    """Compilations inside read the pieces of the library that they need."""
    with mock.patch.object(llvm, "link_extern_libs", _link_needed):
        yield
