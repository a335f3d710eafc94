"""Triton's language for interpreted kernels: its words, patched once per process, and Python's words as Triton means them."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.extra import cuda, libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime import interpreter as triton_interpreter
from triton.runtime.interpreter import FunctionRewriter, TensorHandle
from triton.runtime.jit import JITFunction

from rlkernel.evaluator.cpu import branches, descriptors, edges, hints, loops, patches, reductions
from rlkernel.evaluator.cpu.arithmetic import NotInterpreted
from rlkernel.evaluator.cpu.branches import Branches
from rlkernel.evaluator.cpu.fetching import TOGETHER
from rlkernel.evaluator.cpu.kinds import carrying, others
from rlkernel.evaluator.cpu.latency import deepest
from rlkernel.evaluator.cpu.loaded import DecidedByMemory, is_known, is_loaded, know, mark, marks_addresses, refuse_numbers
from rlkernel.evaluator.cpu.loop_text import Loops
from rlkernel.evaluator.cpu.loops import Numbers, Unrolled
from rlkernel.evaluator.cpu.machine import Machine
from rlkernel.evaluator.cpu.semantic import Semantic

_CONSTANT_OPERATORS = (
    *(f"__{side}{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv") for side in ("", "r")),
    *(f"__{name}__" for name in ("mod", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "lshift", "rshift")),
    "logical_and", "logical_or",
)  # fmt: skip
"""Those operators of `tl.constexpr` that take another operand."""


class KernelWords(Loops, Branches):
    """A kernel's tree with `and`, `or` and `not` of elements, assigned numbers as tensors, and without assertions."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = ".and" if isinstance(node.op, ast.And) else ".or"
        whole = node.values[0]
        for value in node.values[1:]:  # the rest in a lambda, because it is not evaluated where Python would not
            nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
            whole = ast.Call(ast.Name(name, ast.Load()), [whole, ast.Lambda(nothing, value)], [])
        return ast.copy_location(whole, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(ast.Call(ast.Name(".not", ast.Load()), [node.operand], []), node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = ast.Call(ast.Name(".tensor", ast.Load()), [node.value], [])
        return node


def _and(first: Any, rest: Callable[[], Any]) -> Any:
    return first.logical_and(rest()) if isinstance(first, tl.tensor) else first and rest()


def _or(first: Any, rest: Callable[[], Any]) -> Any:
    return first.logical_or(rest()) if isinstance(first, tl.tensor) else first or rest()


def _not(value: Any) -> Any:
    return value.__not__() if isinstance(value, tl.tensor) else not value


def _maximum(*values: Any) -> Any:
    """What `max` means in a kernel: of elements, where a value is a tensor."""
    return tl.maximum(*values) if any(isinstance(v, tl.tensor) for v in values) else max(*values)


def _minimum(*values: Any) -> Any:
    return tl.minimum(*values) if any(isinstance(v, tl.tensor) for v in values) else min(*values)


def scalar(value: Any) -> Any:
    """A plain number as a kernel's argument: float32, a truth value, or the narrowest integer of at least 32 bits."""
    if isinstance(value, bool):
        return tl.tensor(TensorHandle(np.array([value]), tl.int1), tl.int1)
    if isinstance(value, float):
        return tl.tensor(TensorHandle(np.array([value], dtype=np.float32), tl.float32), tl.float32)
    return triton_interpreter._implicit_cvt(value) if isinstance(value, int) else value


def _assigned(value: Any) -> Any:
    """What a kernel's variable holds after `name = value`: numbers become tensors, those in tuples, too."""
    if isinstance(value, tuple):
        return tuple(_assigned(item) for item in value)
    value = value.value if isinstance(value, tl.constexpr) else value
    return scalar(value) if isinstance(value, (bool, int, float)) else value


def _range(machine: Machine, first: Any, last: Any = None, step: Any = None, **hints: Any) -> Numbers:
    """`range` and `tl.range` in a kernel: their variable is a tensor, of 64 bits where a bound is."""
    bounds = [0, first, 1] if last is None else [first, last, 1 if step is None else step]
    elsewhere = [others(bound.handle) if isinstance(bound, tl.tensor) else None for bound in bounds]
    loaded = is_loaded(bounds)
    if not is_known(bounds):
        raise DecidedByMemory
    if loaded:  # it sets no programs apart
        machine.leave_open()
    differs = loaded and any(is_loaded(bounds[place]) or elsewhere[place] is not None for place in (0, 2))
    wide = any(isinstance(b, tl.tensor) and b.dtype.primitive_bitwidth == 64 for b in bounds)
    kind, dtype = (tl.int64, np.int64) if wide else (tl.int32, np.int32)
    start, stop, by = (int(_plain(bound)) for bound in bounds)
    if any(data is not None for data in elsewhere):
        starts, stops, steps = (int(_plain(b)) if data is None else data for b, data in zip(bounds, elsewhere, strict=True))
        counts = np.reshape(-((starts - stops) // steps), -1)
        machine.kinds.take(counts) if loaded else machine.kinds.turns(counts)

    def number(of: int) -> Any:
        handle = TensorHandle(np.array([of], dtype=dtype), kind)
        if elsewhere[0] is not None or elsewhere[2] is not None:
            carrying(handle, np.asarray(starts + (of - start) // by * steps, dtype=dtype))
        return tl.tensor(know(mark(handle)) if differs else handle, kind)

    known = not any(isinstance(bound, tl.tensor) for bound in bounds)
    stages = int(_plain(hints.get("num_stages")) or 1)
    return Numbers(range(start, stop, by), number, TOGETHER if known else 1, stages, told=loaded)


def _static_range(first: Any, last: Any = None, step: Any = None) -> Unrolled:
    """`tl.static_range` in a kernel, whose variable is a number of Python."""
    start, stop = (0, first) if last is None else (first, last)
    numbers = range(*(int(_plain(bound)) for bound in (start, stop, 1 if step is None else step)))
    return Unrolled(numbers, lambda of: tl.tensor(TensorHandle(np.array([of], dtype=np.int32), tl.int32), tl.int32), len(numbers))


def _plain(value: Any) -> Any:
    """A bound of a loop as a number of Python, which decides nothing yet."""
    if isinstance(value, tl.tensor):
        return value.handle.data.item()
    return value.value if isinstance(value, tl.constexpr) else value


def _deciding(machine: Machine, method: Callable[[Any], Any], *, truth: bool) -> Callable[[Any], Any]:
    """A method of tensors that gives a value of Python: programs with other values go another way."""

    def call(tensor: Any) -> Any:
        data = others(tensor.handle) if machine.dry else None
        if is_loaded(tensor):
            raise DecidedByMemory
        if data is not None:
            machine.kinds.decide(data != 0 if truth else data)
        return method(tensor)

    return call


def _counted(machine: Machine, reduction: Any) -> Any:
    """A reduction or scan that counts one operation per element."""

    def call(values: Any, axis: Any, *args: Any, **kwargs: Any) -> Any:
        for value in values if isinstance(values, (tuple, tl.core.tuple)) else (values,):
            machine.counts.compute(float(value.handle.data.size), floats=value.dtype.scalar.is_floating())
        made = reduction(values, axis, *args, **kwargs)
        if machine.dry:
            machine.chain.reduced(values, axis, made)
        return made

    return call


def _with_tensors(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator of a constant, which gives a tensor where the other operand is one, as Triton compiles it."""

    def call(constant: Any, other: Any) -> Any:
        made = method(constant, other)
        return made.value if isinstance(made, tl.constexpr) and isinstance(made.value, tl.tensor) else made

    return call


def _not_interpreted(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotInterpreted(f"the CPU runner cannot interpret {name}: only a GPU runs it")

    return call


def words(semantic: Any) -> dict[str, Any]:
    """What the names mean that `KernelWords` writes, and Python's functions that mean something else in a kernel."""
    return {
        ".and": _and, ".or": _or, ".not": _not, ".tensor": _assigned,
        "interpreter_semantic": semantic, "max": _maximum, "min": _minimum,
        "range": functools.partial(_range, semantic.builder),
        **branches.words(
            _assigned, lambda test: semantic.builder.chain.wait(deepest([test])), semantic.builder.follow_both,
            semantic.builder.followed_both, lambda branch, taken: semantic.builder.extents.note_side(branch, taken),
        ),
        **loops.words(semantic.builder),
    }  # fmt: skip


def _patch_words(machine: Machine, semantic: Any) -> None:
    tl.tensor.T = property(lambda tensor: semantic.permute(tensor, (1, 0)))  # as compiled; the interpreter's own forgets marks
    tl.tensor.__index__ = lambda tensor: int(tensor.handle.data.item())  # numpy 2.4 refuses int() of arrays of one element
    for name in ("__index__", "__bool__"):
        setattr(tl.tensor, name, _deciding(machine, getattr(tl.tensor, name), truth=name == "__bool__"))
    refuse_numbers(("__str__", "__repr__"))
    for name in _CONSTANT_OPERATORS:
        setattr(tl.constexpr, name, _with_tensors(getattr(tl.constexpr, name)))
    for name, member in list(vars(tl.tensor).items()):  # `x.exp()`: Triton's interpreter gives a semantic to its builtins alone
        if inspect.isfunction(member) and "_semantic" in inspect.signature(member).parameters:
            setattr(tl.tensor, name, functools.partialmethod(member, _semantic=semantic))
    for module in (tl, tl.core):
        for name in ("reduce", "associative_scan"):
            setattr(module, name, _counted(machine, getattr(module, name)))
        module.range = functools.partial(_range, machine)
        module.static_range = _static_range
        module.map_elementwise = _not_interpreted("map_elementwise")
        module.static_print = lambda *values, **options: None
        module.multiple_of = functools.partial(hints.multiple_of, machine)
        module.max_contiguous = functools.partial(hints.max_contiguous, machine)


def _patch_libdevice(semantic: Any) -> None:
    for name in dir(cuda_libdevice):  # the generic module's members are place-holders that the compiler maps
        member = getattr(cuda_libdevice, name)
        if tl.core.is_builtin(member):
            setattr(cuda_libdevice, name, functools.partial(member, _semantic=semantic))
            if hasattr(libdevice, name):
                setattr(libdevice, name, getattr(cuda_libdevice, name))


def _patch_card() -> None:
    """What only a card answers, such as its clock, the number of a multiprocessor, and how many warps run a program."""
    for module in (cuda, sys.modules[cuda.__name__]):  # the one that Triton's language names, and the one that is imported
        for name, member in list(vars(module).items()):
            if tl.core.is_builtin(member):
                setattr(module, name, _not_interpreted(f"tl.extra.cuda.{name}"))


def the_machine() -> tuple[Machine, Any]:
    """The process's one machine and its semantic. Patches `triton.language`, for good unless `patches.taken_back` ends."""
    made = _made()
    patches.put_in()
    return made


def _patch_dtypes() -> None:
    """Triton's interpreter makes a table of all dtypes at each of its questions; here it is asked once per dtype."""
    of_scalar, address = functools.cache(triton_interpreter._get_np_dtype), np.dtype(np.uint64)

    def numpy_dtype(kind: Any) -> Any:
        scalar_kind = kind.scalar
        return address if scalar_kind.is_ptr() else of_scalar(scalar_kind)

    triton_interpreter._get_np_dtype = numpy_dtype


@functools.cache
def _made() -> tuple[Machine, Any]:
    machine = Machine()
    semantic = Semantic(machine)
    triton_interpreter.interpreter_builder = machine
    triton_interpreter.interpreter_semantic = semantic
    triton_interpreter._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    _patch_dtypes()
    reductions.install(machine.meet)
    descriptors.install(machine)
    edges.install()
    marks_addresses()
    _patch_words(machine, semantic)
    _patch_libdevice(semantic)
    _patch_card()
    rewritten: dict[int, Any] = {}

    def call(jit: Any, *args: Any, **kwargs: Any) -> Any:
        """A library function (`tl.sum`, ...) called from interpreted code."""
        if id(jit) not in rewritten:
            rewritten[id(jit)] = FunctionRewriter(jit.fn).rewrite_ast()
        return rewritten[id(jit)](*args, **kwargs)

    def member(jit: Any, owner: Any, kind: Any) -> Any:
        """`x.sum()`: a library function as a method of a tensor."""
        return jit if owner is None else functools.partial(call, jit, owner)

    JITFunction.__call__, JITFunction.__get__ = call, member
    return machine, semantic
