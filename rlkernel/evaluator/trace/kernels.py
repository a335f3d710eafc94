"""The `@triton.jit` functions that a candidate launches, as text and data."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime.jit import JITFunction

from rlkernel.evaluator.program.schema import MAX_KERNELS, Function
from rlkernel.evaluator.program.values import Constexpr, FunctionRef, LibraryRef, ModuleRef, TlDtype, Unknown, Value
from rlkernel.evaluator.trace.binding import fields_of
from rlkernel.evaluator.trace.host_numbers import UnknownValue, Untraceable, has_numbers
from rlkernel.evaluator.trace.inductor import HELPERS
from rlkernel.evaluator.trace.parameters import at_run_time, with_defaults

_PLAIN = frozenset({int, bool, float, str, type(None)})
MOST_BITS = 4096
"""The bits that a whole number in a Program may have: those of what a kernel computes while it is compiled."""


class KernelTable:
    """The `@triton.jit` functions met so far, as text."""

    def __init__(self) -> None:
        self.functions: list[Function | None] = []
        self._index: dict[tuple[int, str, str], int] = {}
        self._alive: list[Any] = []
        self._wrapped: dict[int, Any] = {}
        """Plain Python functions, by identity, as Triton would have them decorated; these keep them alive."""
        self._same: dict[str, int] = {}
        """A function as Python writes it -> its index."""
        self._constants: dict[int, dict[str, Any]] = {}
        """Function -> its global constants, as they were when it was met first."""

    def index(self, jit: Any, tuples: dict[str, Any] | None = None, freed: tuple[str, ...] = ()) -> int:
        """The table's index of `jit`, extracting it and the helpers that it calls on first sight. `tuples`: parameters that are
        given tuples, which the text takes part by part. `freed`: those that are constexpr and take what a run gives."""
        shapes = {name: _written(name, value) for name, value in (tuples or {}).items()}
        items = {name: _named(name, value) for name, value in (tuples or {}).items()}
        key = (id(jit), str(jit.src), repr((shapes, items, freed)) if shapes or freed else "")
        known = self._index.get(key)
        if known is not None:
            _check_unchanged(self._constants[known], jit.fn.__globals__)
            return known
        if len(self.functions) >= MAX_KERNELS:
            raise Untraceable(f"more than {MAX_KERNELS} Triton functions")
        number = len(self.functions)
        self.functions.append(None)
        self._alive.append(jit)
        self._index[key] = number
        scope = {**jit.fn.__globals__}
        for name, cell in zip(jit.fn.__code__.co_freevars, jit.fn.__closure__ or (), strict=True):
            scope[name] = cell.cell_contents
        source = _named_flat(at_run_time(with_defaults(str(jit.src), jit.fn), freed), scope)
        source = _taken_apart(source, tuples or {}, shapes) if shapes else source
        names = _free_names(source)
        named = {name: jit.fn.__globals__.get(name) for name in names}
        # Before its bindings, among which the function itself may be.
        self._constants[number] = {name: value for name, value in named.items() if isinstance(value, tl.constexpr)}
        annotated = {n for n, a in scope.get("__annotations__", {}).items() if "constexpr" in str(a)}
        for name in _local_names(source):  # a parameter `F` is not the module that the file calls so
            if isinstance(scope.get(name), types.ModuleType):
                del scope[name]
        plain = any(jit is wrapped for wrapped in self._wrapped.values())  # and may call other plain functions
        bindings = {
            name: (self._of_python(scope[name]) if plain else None) or self.free_name(scope[name], name in annotated)
            for name in sorted(names & scope.keys())
        }
        constexpr = type(jit).__name__ == "ConstexprFunction"
        skip = () if constexpr else tuple(p.name for p in jit.params if p.do_not_specialize)
        line = _def_line(jit)
        known_bindings = {name: value for name, value in bindings.items() if not isinstance(value, Unknown)}
        function = Function(jit.fn.__name__, source, line, known_bindings, skip, constexpr)
        known = self._same.setdefault(repr(function), number)  # not by ==, for which 1, 1.0 and True are one
        if known != number and number == len(self.functions) - 1:  # forward defines its kernels anew in each call
            self.functions.pop()
            self._index[key], self._constants[known] = known, self._constants.pop(number)
            return known
        self.functions[number] = function
        return number

    def free_name(self, value: Any, annotated: bool) -> Value:
        """A kernel's free name as data. Triton lets kernels use a global constant only when it is a constexpr."""
        if isinstance(value, tl.constexpr):
            inner = self._of_python(value.value)
            return inner or Constexpr(self.binding(value.value))
        return Constexpr(self.binding(value)) if annotated else self.binding(value)

    def _of_python(self, value: Any) -> FunctionRef | None:
        """A plain Python function inside a `tl.constexpr`, which Triton calls on constants while it compiles; None for anything
        else, and for what has no text of its own, such as a lambda."""
        if not isinstance(value, types.FunctionType):
            return None
        if id(value) not in self._wrapped:
            try:
                self._wrapped[id(value)] = triton.constexpr_function(value)
            except (AttributeError, OSError, TypeError, ValueError):
                return None
        return FunctionRef(self.index(self._wrapped[id(value)]))

    def binding(self, value: Any) -> Value:
        """An object that a kernel refers to as data; Unknown for what no kernel can use."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, float, str)):
            return bounded(value)
        if isinstance(value, JITFunction):
            module = str(getattr(value.fn, "__module__", ""))
            if module.startswith("triton."):
                return LibraryRef(module, value.fn.__name__)
            return FunctionRef(self.index(value))
        if isinstance(value, types.ModuleType):
            return ModuleRef(value.__name__)
        if isinstance(value, tl.dtype):
            return TlDtype(value.name)
        home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if isinstance(home, str) and isinstance(name, str) and home.split(".")[0] == "triton":
            return LibraryRef(home, name)
        if type(value).__name__ == "ConstexprFunction":
            return FunctionRef(self.index(value))
        if hasattr(value, "__triton_aggregate__"):
            raise Untraceable(f"a kernel uses {name}, an aggregate of Triton's: pass its fields one by one, or a tuple")
        return Unknown()

    def constant(self, name: str, value: Any) -> Value:
        """A constexpr argument as data. Raises Untraceable."""
        if type(value) in _PLAIN:
            return bounded(value)
        if isinstance(value, tl.constexpr):
            value = value.value
        if has_numbers(value):
            raise UnknownValue(f"constexpr argument {name} depends on a parameter's value; pass it as an argument of run time")
        encoded = self._of_python(value) or self.binding(value)
        if isinstance(encoded, (Unknown, ModuleRef)) or isinstance(value, torch.dtype):
            raise Untraceable(f"constexpr argument {name} is a {type(value).__name__}")
        return encoded


def bounded(value: Value) -> Value:
    """A plain value, as it is. Raises Untraceable for a whole number that no message holds."""
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise Untraceable(f"a whole number of {value.bit_length()} bits, of which a trace holds {MOST_BITS}")
    return value


def _check_unchanged(constants: dict[str, Any], now: dict[str, Any]) -> None:
    """Whether a kernel's global constants are what they were. Raises RuntimeError as `JITFunction.run` does."""
    for name, value in constants.items():
        other = now.get(name)
        if other is not value and not (isinstance(other, tl.constexpr) and other.value == value.value):
            raise RuntimeError(f"Global variable {name} has changed since we compiled this kernel, from {value} to {other}")


def parts_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """An argument as the parameters that stand for it: itself, or a tuple's items under names of their own."""
    if not isinstance(value, tuple):
        yield name, value
        return
    for place, item in enumerate(value):
        yield from parts_of(f"{name}__{place}", item)


def _written(name: str, value: Any) -> str:
    """A tuple argument as a kernel's text would write it, of its parts."""
    if not isinstance(value, tuple):
        return name
    return "(" + "".join(f"{_written(f'{name}__{place}', item)}, " for place, item in enumerate(value)) + ")"


def _named(part: str, value: Any, texts: tuple[str, ...] = ()) -> dict[str, str]:
    """What a kernel calls the items of a named tuple, such as `x.stride` or `x[1].stride` -> the parameters in its place. `part`:
    the parameter that stands for `value`, and `texts`: what the kernel calls it, if that is something else."""
    found: dict[str, str] = {}
    if not isinstance(value, tuple):
        return found
    fields = fields_of(value)
    for place, item in enumerate(value):
        made = f"{part}__{place}"
        of_item = [f"{text}.{fields[place]}" for text in texts or (part,)] if fields else []
        found |= dict.fromkeys(of_item, _written(made, item))
        found |= _named(made, item, (*of_item, *(f"{text}[{place}]" for text in texts or (part,))))
    return found


class _ByName(ast.NodeTransformer):
    """Writes the parameters that stand for the items of named tuples where a kernel names these."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        part = self._names.get(ast.unparse(node))
        if part is not None and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.parse(part, mode="eval").body, node)
        self.generic_visit(node)
        return node


def _taken_apart(source: str, tuples: dict[str, Any], shapes: dict[str, str]) -> str:
    """A kernel's text that takes the parts of its tuple arguments and makes the tuples itself, in the first line of its body."""
    tree = ast.parse(source)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    arguments: list[ast.arg] = []
    constants: set[str] = set()
    for argument in definition.args.args:
        for name, part in parts_of(argument.arg, tuples.get(argument.arg)):
            noted = argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)
            constants |= {argument.arg} if noted else set()
            fixed = noted or part is None or isinstance(part, tl.constexpr)
            note = ast.parse("tl.constexpr", mode="eval").body if fixed else None
            arguments.append(ast.arg(name, note if argument.arg in tuples else argument.annotation))
    definition.args.args = arguments
    makers = [
        ast.parse(f"{name}: tl.constexpr = {text}" if name in constants else f"{name} = {text}").body[0]
        for name, text in shapes.items()
    ]
    given = {name: value for name, value in tuples.items() if name not in _stored(definition)}
    by_name = _ByName({text: part for name, value in given.items() for text, part in _named(name, value).items()})
    definition.body = [*makers, *(by_name.visit(statement) for statement in definition.body)]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _named_flat(source: str, scope: dict[str, Any]) -> str:
    """A kernel's text with the helpers of torch.compile's kernels under names of their own, which are put into `scope`:
    `triton_helpers.maximum(a, b)` becomes `triton_helpers__maximum(a, b)`, a function like the candidate's own."""
    modules = {name for name, value in scope.items() if isinstance(value, types.ModuleType) and value.__name__ == HELPERS}
    if not modules & _free_names(source):
        return source

    class Flat(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
            self.generic_visit(node)
            if not (isinstance(node.value, ast.Name) and node.value.id in modules):
                return node
            helper = getattr(scope[node.value.id], node.attr, None)
            if not isinstance(helper, (JITFunction, types.ModuleType)):
                return node
            name = f"{node.value.id}__{node.attr}"
            scope[name] = helper
            return ast.copy_location(ast.Name(name, ast.Load()), node)

    return ast.unparse(ast.fix_missing_locations(Flat().visit(ast.parse(source)))) + "\n"


@functools.lru_cache(maxsize=MAX_KERNELS)
def _free_names(source: str) -> frozenset[str]:
    """Names that a function's body mentions; annotations mean nothing to a kernel."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _stored(tree: ast.AST) -> set[str]:
    """The names that a tree assigns."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _local_names(source: str) -> set[str]:
    """The parameters of a function and the names that it assigns."""
    tree = ast.parse(source)
    return _stored(tree) | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def _def_line(jit: Any) -> int:
    """Line of `def` in the candidate's file (decorators come before it)."""
    for offset, text in enumerate(jit.raw_src):
        if text.lstrip().startswith("def "):
            return int(jit.starting_line_number) + offset
    return int(jit.starting_line_number)
