"""Runs a kernel's checked text with Triton's interpreter, on the CPU, with every address checked.

Two uses: for real (small shapes, correctness), and dry (full shapes, no memory behind the addresses: a few programs of the grid
are followed to count what a launch moves and computes). Meant for a process that dies afterwards: it patches `triton.language`
for good.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton._C.libtriton import ir
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter as triton_interpreter
from triton.runtime.interpreter import ASTTransformer, FunctionRewriter, InterpreterBuilder, TensorHandle
from triton.runtime.jit import JITFunction

from rlkernel.evaluator.cpu import libdevice as libdevice_functions
from rlkernel.evaluator.cpu import reductions
from rlkernel.evaluator.judging.counts import Counts
from rlkernel.evaluator.program.kernel_source import KernelSet, binding_value, canonical
from rlkernel.evaluator.program.replay import tensors_in
from rlkernel.evaluator.program.schema import Config, Launch, Program, block_shape
from rlkernel.evaluator.program.values import Descriptor

SAMPLED_PROGRAMS = 2
"""Programs of the grid that a dry launch follows."""


class OutOfBounds(Exception):
    """A launch reads or writes outside the tensors that it was given."""


class KernelFailed(Exception):
    """The kernel's body raised while it was interpreted."""


def _tf32(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Round float32 to tf32's 10 bits of mantissa, as the matrix units do."""
    bits = data.astype(np.float32).view(np.uint32)
    rounded: np.ndarray[Any, Any] = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return rounded


class Machine(InterpreterBuilder):  # type: ignore[misc]
    """Triton's interpreter with checked memory and counters."""

    def __init__(self) -> None:
        super().__init__()
        self.dry = False
        self.counts = Counts()
        self._starts = np.zeros(0, dtype=np.uint64)
        self._ends = np.zeros(0, dtype=np.uint64)

    def map(self, extents: Sequence[tuple[int, int]]) -> None:
        """Addresses that a launch may touch: (start, end) per storage, in the order of its arguments."""
        self._order = sorted(range(len(extents)), key=lambda i: extents[i][0])
        self._starts = np.array([extents[i][0] for i in self._order], dtype=np.uint64)
        self._ends = np.array([extents[i][1] for i in self._order], dtype=np.uint64)

    def _account(self, pointers: Any, mask: Any, width: int, *, write: bool) -> None:
        """Check the addresses under `mask` and count their bytes. Raises OutOfBounds."""
        addresses = np.broadcast_to(pointers, np.broadcast_shapes(pointers.shape, mask.shape))[
            np.broadcast_to(mask, np.broadcast_shapes(pointers.shape, mask.shape)).astype(bool)
        ]
        if addresses.size == 0:
            return
        place = np.searchsorted(self._starts, addresses, side="right") - 1
        inside = (place >= 0) & (len(self._ends) > 0)
        if len(self._ends):
            inside &= addresses + np.uint64(width) <= self._ends[np.maximum(place, 0)]
        if not inside.all():
            verb = "writes" if write else "reads"
            raise OutOfBounds(f"program {self.grid_idx} {verb} {int((~inside).sum())} elements outside the tensors it was given")
        for index in np.unique(place):
            mine = addresses[place == index]
            storage = self._order[int(index)]
            sectors = np.unique(mine >> np.uint64(5)).size * 32
            self.counts.traffic[storage] = self.counts.traffic.get(storage, 0.0) + float(sectors)
            if write:
                self.counts.stored[storage] = self.counts.stored.get(storage, 0.0) + float(mine.size * width)

    def create_masked_load(
        self, ptrs: Any, mask: Any, other: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any
    ) -> Any:
        kind = ptrs.get_element_ty()
        self._account(ptrs.data, mask.data, max(1, kind.primitive_bitwidth // 8), write=False)
        if not self.dry:
            return super().create_masked_load(ptrs, mask, other, cache_modifier, eviction_policy, is_volatile)
        dtype = triton_interpreter._get_np_dtype(kind)
        return TensorHandle(np.zeros_like(ptrs.data, dtype=dtype), kind)

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, cache_modifier: Any, eviction_policy: Any) -> Any:
        self._account(ptrs.data, mask.data, max(1, ptrs.get_element_ty().primitive_bitwidth // 8), write=True)
        return None if self.dry else super().create_masked_store(ptrs, value, mask, cache_modifier, eviction_policy)

    def create_atomic_rmw(self, op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        self._account(ptr.data, mask.data, max(1, val.dtype.primitive_bitwidth // 8), write=True)
        if self.dry:
            return TensorHandle(np.zeros_like(val.data), val.dtype.scalar)
        if op == ir.ATOMIC_OP.XCHG and val.dtype.scalar.is_floating():  # of bits: the interpreter exchanges integers
            size = val.data.itemsize
            bits = TensorHandle(val.data.view(f"i{size}"), tl.dtype(f"int{8 * size}"))
            old = super().create_atomic_rmw(op, ptr, bits, mask, sem, scope)
            return TensorHandle(old.data.view(val.data.dtype), val.dtype.scalar)
        return super().create_atomic_rmw(op, ptr, val, mask, sem, scope)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        self._account(ptr.data, np.ones_like(ptr.data, dtype=bool), max(1, val.dtype.primitive_bitwidth // 8), write=True)
        if self.dry:
            return TensorHandle(np.array(cmp.data, copy=True), cmp.dtype.scalar)  # as if the comparison held, so that locks open
        return super().create_atomic_cas(ptr, cmp, val, sem, scope)

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        kind = {"fp32": "tf32", "fp16": "fp16", "bf16": "bf16"}.get(a.dtype.scalar.name, "fp16")
        precision = str(input_precision).lower()
        passes = 3.0 if precision.endswith("x3") else 6.0 if precision.endswith("x6") else 1.0  # several products of parts
        exact = "ieee" in precision or passes > 1 or a.dtype.scalar.name != "fp32"
        work = 2.0 * a.data.size * b.data.shape[-1] * passes
        if "ieee" in precision and a.dtype.scalar.name == "fp32":
            self.counts.flops += work
        else:
            self.counts.matrix_flops[kind] = self.counts.matrix_flops.get(kind, 0.0) + work
        if not exact:
            a = TensorHandle(_tf32(a.data), a.dtype)
            b = TensorHandle(_tf32(b.data), b.dtype)
        if a.dtype.scalar.name in ("fp16", "bf16") and d.dtype.scalar.name == "fp32":
            a, b = (self.cast_impl(x, tl.float32) for x in (a, b))
        return super().create_dot(a, b, d, input_precision, max_num_imprecise_acc)

    def binary_op(self, lhs: Any, rhs: Any, op: Any) -> Any:
        self.counts.flops += float(lhs.data.size)
        result = super().binary_op(lhs, rhs, op)
        if result.data.dtype == np.bool_:
            result.dtype = tl.int1  # Triton keeps the operands' type, which a comparison of scalars would carry into masks
        return result

    def unary_op(self, arg: Any, op: Any) -> Any:
        self.counts.flops += 4.0 * float(arg.data.size)
        return super().unary_op(arg, op)

    def create_extern_elementwise(self, lib: Any, path: Any, symbol: Any, args: Any, kind: Any, pure: Any) -> Any:
        call = libdevice_functions.function(str(symbol))
        if call is None:
            raise NotImplementedError(f"libdevice function {symbol} is not known to the CPU runner")
        data = np.asarray(call(*[a.data for a in args])).reshape(np.broadcast_shapes(*[a.data.shape for a in args]))
        self.counts.flops += 8.0 * float(data.size)
        return TensorHandle(data.astype(triton_interpreter._get_np_dtype(kind.scalar)), kind.scalar)


class _Logic(ast.NodeTransformer):
    """`and`, `or` and `not` as Triton means them: of elements, where the first value is a tensor."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "interpreter_and" if isinstance(node.op, ast.And) else "interpreter_or"
        whole = node.values[0]
        for value in node.values[1:]:  # the rest in a lambda, because it is not evaluated where Python would not
            nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
            whole = ast.Call(ast.Name(name, ast.Load()), [whole, ast.Lambda(nothing, value)], [])
        return ast.copy_location(whole, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(ast.Call(ast.Name("interpreter_not", ast.Load()), [node.operand], []), node)


def _and(first: Any, rest: Callable[[], Any]) -> Any:
    return first.logical_and(rest()) if isinstance(first, tl.tensor) else first and rest()


def _or(first: Any, rest: Callable[[], Any]) -> Any:
    return first.logical_or(rest()) if isinstance(first, tl.tensor) else first or rest()


def _not(value: Any) -> Any:
    return value.__not__() if isinstance(value, tl.tensor) else not value


class _CheckedKernels(KernelSet):
    """Kernel functions as plain Python functions over interpreter tensors."""

    def _transform(self, definition: ast.FunctionDef) -> ast.FunctionDef:
        tree = _Logic().visit(ASTTransformer().visit(definition))
        assert isinstance(tree, ast.FunctionDef)
        return tree


def _wrap(fn: Any, function: Any) -> Any:
    fn.fn = fn  # `tl.reduce` and `tl.associative_scan` ask a combine function for `.fn`
    return fn


def _maximum(*values: Any) -> Any:
    """What `max` means in a kernel: of elements, where a value is a tensor."""
    return tl.maximum(*values) if any(isinstance(v, tl.tensor) for v in values) else max(*values)


def _minimum(*values: Any) -> Any:
    return tl.minimum(*values) if any(isinstance(v, tl.tensor) for v in values) else min(*values)


def _counted(machine: Machine, reduction: Any) -> Any:
    """A reduction or scan that counts one operation per element."""

    def call(values: Any, *args: Any, **kwargs: Any) -> Any:
        for value in values if isinstance(values, (tuple, tl.core.tuple)) else (values,):
            machine.counts.flops += float(value.handle.data.size)
        return reduction(values, *args, **kwargs)

    return call


@functools.cache
def _machine() -> tuple[Machine, Any]:
    """The process's one machine and its semantic. Patches `triton.language`, for good."""
    machine = Machine()
    semantic = TritonSemantic(machine)
    triton_interpreter.interpreter_builder = machine
    triton_interpreter.interpreter_semantic = semantic
    language = types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
    triton_interpreter._patch_lang(language)
    reductions.install()
    # Triton 3.6 converts loop bounds by int(array), which numpy 2.4 refuses for arrays of one element.
    tl.tensor.__index__ = lambda tensor: int(tensor.handle.data.item())
    for language_module in (tl, tl.core):
        for name in ("reduce", "associative_scan"):
            setattr(language_module, name, _counted(machine, getattr(language_module, name)))
    for name in dir(cuda_libdevice):  # the generic module's members are place-holders that the compiler maps
        member = getattr(cuda_libdevice, name)
        if tl.core.is_builtin(member):
            setattr(cuda_libdevice, name, functools.partial(member, _semantic=semantic))
            if hasattr(libdevice, name):
                setattr(libdevice, name, getattr(cuda_libdevice, name))
    rewritten: dict[int, Any] = {}

    def call(jit: Any, *args: Any, **kwargs: Any) -> Any:
        """A library function (`tl.sum`, ...) called from interpreted code."""
        if id(jit) not in rewritten:
            rewritten[id(jit)] = FunctionRewriter(jit.fn).rewrite_ast()
        return rewritten[id(jit)](*args, **kwargs)

    JITFunction.__call__ = call
    return machine, semantic


class Interpreter:
    """Launches of one Program, on the process's one machine."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.machine, semantic = _machine()
        self._semantic = semantic
        logic = {"interpreter_and": _and, "interpreter_or": _or, "interpreter_not": _not, "max": _maximum, "min": _minimum}
        self._kernels = _CheckedKernels(program, _wrap, {"interpreter_semantic": semantic, **logic})

    def _arguments(self, launch: Launch, config: Config, args: dict[str, Any], addresses: dict[int, int]) -> dict[str, Any]:
        function = self.program.functions[launch.function]
        bound: dict[str, Any] = {}
        for name in canonical(function).parameters:
            if name in config.constants:
                bound[name] = binding_value(config.constants[name], self._kernels.get)
                continue
            value = args[name]
            if isinstance(value, torch.Tensor):
                bound[name] = _pointer(value, addresses)
            elif isinstance(value, Descriptor):
                bound[name] = self._descriptor(value, block_shape(name, value, config), addresses)
            elif isinstance(value, float):
                bound[name] = tl.tensor(TensorHandle(np.array([value], dtype=np.float32), tl.float32), tl.float32)
            else:
                bound[name] = triton_interpreter._implicit_cvt(value)
        return bound

    def _descriptor(self, value: Descriptor, block: tuple[int, ...], addresses: dict[int, int]) -> Any:
        """As Triton's own interpreter binds one; its loads and stores are checked element by element like any other."""
        strides = [triton_interpreter._implicit_cvt(stride) for stride in value.strides[:-1]]
        return self._semantic.make_tensor_descriptor(
            base=_pointer(value.base, addresses), shape=[triton_interpreter._implicit_cvt(size) for size in value.shape],
            strides=[*strides, tl.constexpr(1)], block_shape=[tl.constexpr(size) for size in block], padding_option=value.padding,
        )  # fmt: skip

    def launch(self, launch: Launch, config: Config, args: dict[str, Any], *, dry: bool) -> Counts:
        """Run the grid (or, dry, sample it). Raises OutOfBounds, KernelFailed, KernelRejected."""
        tensors = tensors_in(args)
        extents, addresses = _dry_extents(tensors) if dry else _real_extents(tensors)
        machine = self.machine
        machine.map(extents)
        machine.dry = dry
        machine.counts = Counts()
        kernel = self._kernels.get(launch.function)
        bound = self._arguments(launch, config, args, addresses)
        machine.set_grid_dim(*config.grid)
        total = config.grid[0] * config.grid[1] * config.grid[2]
        followed = _sample(total, self.program.functions[launch.function].source) if dry else range(total)
        name, line = self.program.functions[launch.function].name, launch.line
        for number in followed:
            x, rest = number % config.grid[0], number // config.grid[0]
            machine.set_grid_idx(x, rest % config.grid[1], rest // config.grid[1])
            try:
                with np.errstate(all="ignore"):
                    kernel(**bound)
            except OutOfBounds as error:
                raise OutOfBounds(f"line {line}: kernel {name}: {error}") from error
            except Exception as error:  # the kernel's failure becomes data
                raise KernelFailed(f"line {line}: kernel {name}: {_describe(error)}") from error
        counts = machine.counts.scaled(total / max(1, len(followed)))
        counts.programs = total
        return counts


def _pointer(tensor: torch.Tensor, addresses: dict[int, int]) -> Any:
    kind = tl.pointer_type(_tl_dtype(tensor.dtype))
    return tl.tensor(TensorHandle(np.array([addresses[id(tensor)]], dtype=np.uint64), kind), kind)


def _describe(error: Exception) -> str:
    if isinstance(error.__cause__, OutOfBounds):
        return str(error.__cause__)
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else ''}"


def _sample(total: int, source: str) -> list[int]:
    """One program in each half of the grid, chosen by a hash, so that a kernel cannot know which ones are followed."""
    if total <= SAMPLED_PROGRAMS:
        return list(range(total))
    half = total // 2
    draw = int.from_bytes(hashlib.sha256(f"{total} {source}".encode()).digest()[:8], "little")
    return [draw % half, half + (draw >> 32) % (total - half)]


_DTYPES = {
    "float32": tl.float32, "float16": tl.float16, "bfloat16": tl.bfloat16, "float64": tl.float64, "int8": tl.int8,
    "int16": tl.int16,
    "int32": tl.int32, "int64": tl.int64, "uint8": tl.uint8, "uint16": tl.uint16, "uint32": tl.uint32, "uint64": tl.uint64,
    "bool": tl.int1, "float8_e5m2": tl.float8e5, "float8_e4m3fn": tl.float8e4nv,
}  # fmt: skip


def _tl_dtype(dtype: torch.dtype) -> Any:
    return _DTYPES[str(dtype).removeprefix("torch.")]


def _real_extents(tensors: list[torch.Tensor]) -> tuple[list[tuple[int, int]], dict[int, int]]:
    extents: dict[int, tuple[int, int]] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        extents.setdefault(storage.data_ptr(), (storage.data_ptr(), storage.data_ptr() + storage.nbytes()))
    return list(extents.values()), {id(t): t.data_ptr() for t in tensors}


def _dry_extents(tensors: list[torch.Tensor]) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Made-up addresses, far apart, aligned like an allocator's."""
    bases: dict[int, int] = {}
    extents: list[tuple[int, int]] = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if storage._cdata not in bases:
            bases[storage._cdata] = (len(bases) + 1) << 44
            extents.append((bases[storage._cdata], bases[storage._cdata] + storage.nbytes()))
    offsets = {id(t): int(t.storage_offset()) * t.element_size() for t in tensors}
    return extents, {id(t): bases[t.untyped_storage()._cdata] + offsets[id(t)] for t in tensors}
