"""Records Triton launches: binds the arguments, extracts the kernel as text, and never compiles or runs anything."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
import triton
import triton.language as tl
from triton._utils import validate_block_shape
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from rlkernel.evaluator.program.schema import MAX_KERNELS, Config, Function, Launch, Value, encode_scalar
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_IGNORED = ("enable_fp_fusion", "debug", "warmup", "launch_cooperative_grid", "launch_pdl", "ir_override", "sanitize_overflow")


class KernelTable:
    """The `@triton.jit` functions met so far, as text."""

    def __init__(self) -> None:
        self.functions: list[Function | None] = []
        self._index: dict[int, int] = {}
        self._alive: list[Any] = []

    def index(self, jit: Any) -> int:
        """The table's index of `jit`, extracting it and the helpers that it calls on first sight."""
        known = self._index.get(id(jit))
        if known is not None:
            return known
        if len(self.functions) >= MAX_KERNELS:
            raise Untraceable(f"more than {MAX_KERNELS} Triton functions")
        number = len(self.functions)
        self.functions.append(None)
        self._alive.append(jit)
        self._index[id(jit)] = number
        scope = {**jit.fn.__globals__}
        for name, cell in zip(jit.fn.__code__.co_freevars, jit.fn.__closure__ or (), strict=True):
            scope[name] = cell.cell_contents
        source = str(jit.src)
        names = _free_names(source)
        annotated = {n for n, a in scope.get("__annotations__", {}).items() if "constexpr" in str(a)}
        bindings = {name: self.free_name(scope[name], name in annotated) for name in sorted(names & scope.keys())}
        skip = tuple(p.name for p in jit.params if p.do_not_specialize)
        line = _def_line(jit)
        self.functions[number] = Function(
            jit.fn.__name__, source, line, {k: v for k, v in bindings.items() if v is not _UNKNOWN}, skip
        )
        return number

    def free_name(self, value: Any, annotated: bool) -> Value:
        """A kernel's free name as data. Triton lets kernels use a global constant only when it is a constexpr."""
        if isinstance(value, tl.constexpr):
            return {"constexpr": self.binding(value.value)}
        return {"constexpr": self.binding(value)} if annotated else self.binding(value)

    def binding(self, value: Any) -> Value:
        """An object that a kernel refers to as data, or `_UNKNOWN` for what no kernel can use."""
        if isinstance(value, JITFunction):
            module = str(getattr(value.fn, "__module__", ""))
            if module.startswith("triton."):
                return {"triton": [module, value.fn.__name__]}
            return {"function": self.index(value)}
        if isinstance(value, types.ModuleType):
            return {"module": value.__name__}
        if isinstance(value, tl.dtype):
            return {"tl_dtype": value.name}
        if isinstance(value, torch.dtype):
            return _UNKNOWN
        home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if isinstance(home, str) and isinstance(name, str) and home.split(".")[0] == "triton":
            return {"triton": [home, name]}
        try:
            return encode_scalar(value)
        except TypeError:
            return _UNKNOWN


_UNKNOWN: Value = {"unknown": True}


def _free_names(source: str) -> set[str]:
    """Names that a function's body mentions; annotations mean nothing to a kernel."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _def_line(jit: Any) -> int:
    """Line of `def` in the candidate's file (decorators come before it)."""
    for offset, text in enumerate(jit.raw_src):
        if text.lstrip().startswith("def "):
            return int(jit.starting_line_number) + offset
    return int(jit.starting_line_number)


def _caller_line(filename: str) -> int:
    """The line of the candidate's file that is launching."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == filename:
            return frame.f_lineno
        frame = frame.f_back
    return 0


class LaunchRecorder:
    """Stands where `JITFunction.run` and `Autotuner.run` stand."""

    def __init__(self, recorder: Recorder, table: KernelTable, filename: str) -> None:
        self.recorder = recorder
        self.table = table
        self.filename = filename
        self._configs: list[tuple[JITFunction, dict[str, Value], Config]] | None = None

    def _bind(self, jit: Any, args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]) -> tuple[dict[str, Value], Config]:
        names = [p.name for p in jit.params]
        if len(args) > len(names):
            raise TypeError(f"{jit.fn.__name__}() takes {len(names)} arguments but {len(args)} were given")
        bound = {p.name: p.default for p in jit.params if p.has_default}
        bound.update(zip(names, args, strict=False))
        options: dict[str, int] = {}
        for key, value in kwargs.items():
            if key in names:
                bound[key] = value
            elif key in _OPTIONS:
                if value is not None:
                    options[key] = int(value)
            elif key not in _IGNORED:
                raise KeyError(f"Keyword argument {key} was specified but unrecognised")
        missing = [name for name in names if name not in bound]
        if missing:
            raise TypeError(f"{jit.fn.__name__}() is missing arguments: {', '.join(missing)}")
        bound = {name: bound[name] for name in names}
        size = grid(bound) if callable(grid) else grid
        size = tuple(size) if isinstance(size, (tuple, list)) else (size,)
        if len(size) > 3:
            raise ValueError("grid must have at most 3 dimensions")
        dims = [int(d) for d in size] + [1] * (3 - len(size))
        constants: dict[str, Value] = {}
        values: dict[str, Value] = {}
        for param in jit.params:
            value = bound[param.name]
            if isinstance(value, tl.constexpr):
                value = value.value
            if param.is_constexpr or value is None:
                constants[param.name] = self._constant(param.name, value)
            else:
                values[param.name] = self._argument(param.name, value)
        blocks = {name: tuple(value["descriptor"]["block_shape"]) for name, value in values.items() if _is_descriptor(value)}
        return values, Config(constants, options, (dims[0], dims[1], dims[2]), blocks)

    def _constant(self, name: str, value: Any) -> Value:
        encoded = self.table.binding(value)
        if encoded is _UNKNOWN or (isinstance(encoded, dict) and "module" in encoded):
            raise Untraceable(f"constexpr argument {name} is a {type(value).__name__}")
        return encoded

    def _argument(self, name: str, value: Any) -> Value:
        if isinstance(value, torch.Tensor):
            return {"t": self.recorder.id_of(value)}
        if isinstance(value, TensorDescriptor):
            return self._descriptor(name, value)
        try:
            return encode_scalar(value)
        except TypeError:
            raise Untraceable(f"kernel argument {name} is a {type(value).__name__}; pass tensors and numbers") from None

    def _descriptor(self, name: str, value: Any) -> Value:
        if getattr(value, "round_f32_to_tf32", False):
            raise Untraceable(f"tensor descriptor {name} rounds to tf32, which a float32 task may not")
        return {
            "descriptor": {
                "base": {"t": self.recorder.id_of(value.base)},
                "shape": [int(size) for size in value.shape],
                "strides": [int(stride) for stride in value.strides],
                "block_shape": [int(size) for size in value.block_shape],
                "padding": str(value.padding),
            }
        }

    def jit_run(self, jit: JITFunction, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        if warmup:
            raise Untraceable("kernel.warmup() needs a compiled kernel on the host")
        for hook in jit.pre_run_hooks:
            hook(*args, **kwargs)
        values, config = self._bind(jit, args, grid, kwargs)
        if self._configs is not None:
            self._configs.append((jit, values, config))
            return
        self.recorder.launch(Launch(self.table.index(jit), values, (config,), _caller_line(self.filename)))

    def autotune_run(self, tuner: Any, *args: Any, **kwargs: Any) -> None:
        """Record every configuration as an alternative of one launch. What the first one's hook does to tensors is recorded;
        hooks of the others run where they may set block shapes of descriptors, and what else they do is dropped.
        """
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        configs = tuner.configs  # not pruned: pruning may look at shapes, and every shape must have the same choices
        described = any(isinstance(value, TensorDescriptor) for value in [*args, *kwargs.values()])
        found: list[tuple[JITFunction, dict[str, Value], Config]] = []
        try:
            for index, config in enumerate(configs):
                if config.pre_hook is not None and (index == 0 or described):
                    recorded = len(self.recorder.steps)
                    config.pre_hook({**tuner.nargs, **kwargs, **config.all_kwargs()})
                    if index > 0:
                        del self.recorder.steps[recorded:]
                self._configs = found
                tuner.fn.run(*args, **{**kwargs, **config.all_kwargs()})
                self._configs = None
        finally:
            self._configs = None
            tuner.nargs = None
        jit, values, _ = found[0]
        launch = Launch(self.table.index(jit), values, tuple(c for _, _, c in found), _caller_line(self.filename))
        self.recorder.launch(launch)


def _is_descriptor(value: Value) -> bool:
    return isinstance(value, dict) and "descriptor" in value


def _check_descriptor(self: Any) -> None:
    """`TensorDescriptor.__post_init__` without reading an address: the same rules, on the offset in the storage."""
    rank, size = len(self.shape), self.base.element_size()
    if not 1 <= rank <= 5 or len(self.strides) != rank or len(self.block_shape) != rank:
        raise AssertionError(f"tensor descriptor of rank {rank}: shape, strides and block_shape need the same 1 to 5 dimensions")
    if self.base.storage_offset() * size % 16:
        raise AssertionError("base must be 16-byte aligned")
    validate_block_shape(self.block_shape)
    if any(stride * size % 16 for stride in self.strides[:-1]):
        raise AssertionError("strides must be 16-byte aligned")
    if any(dim <= 0 for dim in self.shape):
        raise AssertionError("shape must be positive")
    if self.strides[-1] != 1:
        raise AssertionError("Last dimension must be contiguous")
    if self.padding not in ("zero", "nan") or (self.padding == "nan" and not self.base.dtype.is_floating_point):
        raise AssertionError("Illegal value for padding")


class _Driver:
    """What host code may ask Triton's driver about: answers for the target, offers nothing else."""

    def __init__(self, target: Any, properties: dict[str, int]) -> None:
        self._target = target
        self.utils = types.SimpleNamespace(get_device_properties=lambda device: dict(properties))

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_current_target(self) -> Any:
        return self._target

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda


@contextmanager
def intercepting(
    recorder: Recorder, table: KernelTable, filename: str, target: Any, properties: dict[str, int]
) -> Iterator[None]:
    """Launches inside are recorded; Triton believes that `target` is present."""
    launches = LaunchRecorder(recorder, table, filename)

    def method(call: Callable[..., None]) -> Callable[..., None]:
        return lambda self, *args, **kwargs: call(self, *args, **kwargs)

    triton.runtime.driver.set_active(_Driver(target, properties))
    with (
        mock.patch.object(JITFunction, "run", method(launches.jit_run)),
        mock.patch.object(Autotuner, "run", method(launches.autotune_run)),
        mock.patch.object(TensorDescriptor, "__post_init__", _check_descriptor),
    ):
        yield
