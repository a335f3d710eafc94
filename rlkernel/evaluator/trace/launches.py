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
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from rlkernel.evaluator.program import MAX_KERNELS, Config, Function, Launch, Value, encode_scalar
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
        return values, Config(constants, options, (dims[0], dims[1], dims[2]))

    def _constant(self, name: str, value: Any) -> Value:
        encoded = self.table.binding(value)
        if encoded is _UNKNOWN or (isinstance(encoded, dict) and "module" in encoded):
            raise Untraceable(f"constexpr argument {name} is a {type(value).__name__}")
        return encoded

    def _argument(self, name: str, value: Any) -> Value:
        if isinstance(value, torch.Tensor):
            return {"t": self.recorder.id_of(value)}
        try:
            return encode_scalar(value)
        except TypeError:
            raise Untraceable(f"kernel argument {name} is a {type(value).__name__}; pass tensors and numbers") from None

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
        """Record every configuration as an alternative of one launch. Hooks of the first run once."""
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        configs = tuner.configs  # not pruned: pruning may look at shapes, and every shape must have the same choices
        if configs[0].pre_hook is not None:
            configs[0].pre_hook({**tuner.nargs, **kwargs, **configs[0].all_kwargs()})
        self._configs = []
        try:
            for config in configs:
                tuner.fn.run(*args, **{**kwargs, **config.all_kwargs()})
            found = self._configs
        finally:
            self._configs = None
            tuner.nargs = None
        jit, values, _ = found[0]
        launch = Launch(self.table.index(jit), values, tuple(c for _, _, c in found), _caller_line(self.filename))
        self.recorder.launch(launch)


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
    ):
        yield
