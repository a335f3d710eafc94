"""Records Triton launches: what is launched with what, in which configurations. Nothing is compiled or run."""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import torch
import triton.language as tl
from triton.runtime.jit import JITFunction, MockTensor
from triton.tools.tensor_descriptor import TensorDescriptor

from rlkernel.evaluator.program.compiled_ahead import Asked, KernelFacts
from rlkernel.evaluator.program.schema import MAX_CHOICES, Config, Descriptor, Launch, Op, Step, Tuning
from rlkernel.evaluator.program.values import Value
from rlkernel.evaluator.trace.addresses import Address
from rlkernel.evaluator.trace.binding import OPTIONS, Bound, bind, grid_of
from rlkernel.evaluator.trace.configs import Configs
from rlkernel.evaluator.trace.devices import CUDA
from rlkernel.evaluator.trace.host_numbers import HostFloat
from rlkernel.evaluator.trace.kernels import KernelTable, parts_of
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable
from rlkernel.evaluator.trace.tuning import Choice, Choices, Chosen, key_of_choice, tuning_of
from rlkernel.evaluator.trace.warmup import Handle, NeedsKernel, question


def _caller_line(filename: str) -> int:
    """The line of the candidate's file that is launching."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == filename:
            return frame.f_lineno
        frame = frame.f_back
    return 0


def _whole(name: str, value: Any) -> int:
    """An option of a launch. Raises Untraceable for what the compiler would not take either."""
    try:
        return operator.index(value)
    except TypeError:
        raise Untraceable(f"launch option {name} is a {type(value).__name__}; pass a whole number") from None


_USUAL = frozenset({torch.Tensor, int, float})
"""The types of nearly all arguments, of which each is one part and no constant but where the kernel says so."""


class LaunchRecorder:
    """Stands where `JITFunction.run` and `Autotuner.run` stand."""

    def __init__(
        self, recorder: Recorder, table: KernelTable, filename: str, known: Mapping[str, KernelFacts] | None = None
    ) -> None:
        """`known`: of the kernels that host code has asked about."""
        self.recorder = recorder
        self.table = table
        self.filename = filename
        self.kept: dict[int, tuple[int, ...]] = {}
        """Launch, by its identity -> the configurations that the tuner's own pruning keeps at this size."""
        self.asked: Asked | None = None
        """The kernel without whose facts the trace could not go on."""
        self._known = known or {}
        self.choices = Choices()
        self.configs = Configs()
        self._configs: list[tuple[int, dict[str, Value], Config]] | None = None

    def _kernel(self, jit: Any, bound: Bound) -> int:
        """The index of a kernel, with its tuples taken apart, and with constants that a run knows as arguments of run time."""
        tuples = {name: value for name, value in bound.arguments.items() if isinstance(value, tuple)}
        freed = tuple(p.name for p in jit.params if isinstance(bound.arguments[p.name], HostFloat) and p.is_constexpr)
        return self.table.index(jit, tuples, freed)

    def _encoded(self, jit: Any, bound: Bound, grid: tuple[int, int, int]) -> tuple[dict[str, Value], Config]:
        options = {key: _whole(key, value) for key, value in bound.options.items() if key in OPTIONS and value is not None}
        constants: dict[str, Value] = {}
        values: dict[str, Value] = {}
        with torch._C.DisableTorchFunction():
            for index, param in enumerate(jit.params):
                whole = bound.arguments[param.name]
                if type(whole) in _USUAL:
                    if param.is_constexpr:
                        constants[param.name] = self.table.constant(param.name, whole)
                    else:
                        values[param.name] = self._argument(index, param.name, whole)
                    continue
                parts = parts_of(param.name, whole) if isinstance(whole, tuple) else ((param.name, whole),)
                for name, value in parts:
                    fixed = param.is_constexpr and not isinstance(value, HostFloat)
                    if fixed or value is None or isinstance(value, (tl.constexpr, JITFunction)):
                        constants[name] = self.table.constant(name, value)
                    else:
                        values[name] = self._argument(index, name, value)
        blocks = {name: value.block_shape for name, value in values.items() if isinstance(value, Descriptor)}
        return values, self.configs.of(constants, options, grid, blocks)

    def _argument(self, index: int, name: str, value: Any) -> Value:
        kind = type(value)
        if kind is int or kind is float:
            return self.recorder.numbers.known(value)
        if isinstance(value, torch.Tensor):
            elsewhere = self.recorder.devices.of(value) != CUDA
            if elsewhere and value.numel() > 0:  # an empty tensor has no address, wherever it is, and Triton takes it
                raise ValueError(f"Pointer argument (at {index}) cannot be accessed from Triton (cpu tensor?)")
            return self.recorder.ids.ref(value)
        if isinstance(value, TensorDescriptor):
            return self._descriptor(name, value)
        if isinstance(value, Address):
            raise Untraceable(f"kernel argument {name} is a tensor's address; pass the tensor itself")
        if isinstance(value, (int, float)):
            return self.recorder.numbers.known(value)
        raise Untraceable(f"kernel argument {name} is a {kind.__name__}; pass tensors and numbers")

    def _descriptor(self, name: str, value: Any) -> Value:
        if getattr(value, "round_f32_to_tf32", False):
            raise Untraceable(f"tensor descriptor {name} rounds to tf32: leave round_f32_to_tf32 out")
        return Descriptor(
            self.recorder.ids.ref(value.base),
            tuple(int(size) for size in value.shape),
            tuple(int(stride) for stride in value.strides),
            tuple(int(size) for size in value.block_shape),
            str(value.padding),
        )

    def jit_run(self, jit: JITFunction[Any], *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Handle | None:
        for hook in jit.pre_run_hooks:
            hook(*args, **kwargs)
        bound = bind(jit, args, kwargs)
        if warmup:
            return self._compiled_ahead(jit, bound)
        values, config = self._encoded(jit, bound, grid_of(grid, bound.arguments))
        if self._configs is not None:
            self._configs.append((self._kernel(jit, bound), values, config))
            return None
        launch = Launch(self._kernel(jit, bound), values, self.configs.together([config]), _caller_line(self.filename))
        self.recorder.launch(launch)
        return None

    def _compiled_ahead(self, jit: JITFunction[Any], bound: Bound) -> Handle:
        """What is known of a kernel that is compiled and not launched. Raises NeedsKernel."""
        values, config = self._encoded(jit, self._with_tensors(bound), (1, 1, 1))
        kernel = self._kernel(jit, bound)
        functions = tuple(function for function in self.table.functions if function is not None)
        asked = question(kernel, functions, values, (config,), self.recorder.ids.tensor)
        if asked.key not in self._known:
            self.asked = asked
            raise NeedsKernel(asked)

        def launch(grid: tuple[Any, ...], args: tuple[Any, ...]) -> None:
            own = [bound.arguments[p.name] if p.is_constexpr else arg for p, arg in zip(jit.params, args, strict=True)]
            self.jit_run(jit, *own, grid=grid, warmup=False, **bound.options)

        return Handle(self._known[asked.key], jit.fn.__name__, len(jit.params), launch)

    def _with_tensors(self, bound: Bound) -> Bound:
        """What a kernel is compiled ahead with, with a tensor in place of each that is told by its dtype alone."""

        def one(value: Any) -> Any:
            return self.recorder.ids.unseen(tuple(value.shape), value.dtype) if isinstance(value, MockTensor) else value

        return replace(bound, arguments={name: one(value) for name, value in bound.arguments.items()})

    def autotune_run(self, tuner: Any, *args: Any, **kwargs: Any) -> None:
        """Record every configuration as an alternative of one launch, with the numbers that it gives to the kernel and what its
        hook does to tensors; where the host has read which one is chosen, that one. Raises Untraceable where configurations
        differ in the kernel or in the tensors that it is given."""
        if len(tuner.configs) > MAX_CHOICES:
            raise Untraceable(f"an autotuner has {len(tuner.configs)} configurations, more than {MAX_CHOICES}; name fewer")
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        found: list[tuple[int, dict[str, Value], Config]] = []
        hooks: list[list[Step]] = []
        settled = self._known.get(key_of_choice(tuner)) if self._known else None
        line = _caller_line(self.filename)
        choice = self.choices.of(tuner, kwargs, line) if settled is None else Choice(None, (0,))
        tunes = choice.together is not None and self.choices.tunes(choice, line)
        configs = tuner.configs if settled is None else [tuner.configs[settled.chosen]]
        began = len(self.recorder.steps)
        try:
            for config in configs:
                conflicts = kwargs.keys() & config.kwargs.keys()
                if conflicts and len(tuner.configs) > 1:
                    raise ValueError(
                        f"Conflicting meta-parameters: {', '.join(sorted(conflicts))}. "
                        "Make sure that you don't re-define auto-tuned symbols."
                    )
                if config.pre_hook is not None:
                    config.pre_hook({**tuner.nargs, **kwargs, **config.all_kwargs()})
                hooks.append(self.recorder.taken_back(began))
                self._configs = found
                _run_one(tuner, config, args, kwargs)
                self._configs = None
        finally:
            self._configs = None
            tuner.nargs = None
        tuning = tuning_of(tuner, found[0][1], hooks) if tunes else None
        launch = self._tuned_launch(found, hooks, line, choice.together, tuning)
        kept = self.kept[id(launch)] = choice.kept
        ask = functools.partial(self._asks_choice, launch, tuner)
        tuner.best_config = configs[kept[0]] if len(kept) == 1 else Chosen([configs[index] for index in kept], ask)
        self.recorder.launch(launch)

    def _asks_choice(self, launch: Launch, tuner: Any) -> NoReturn:
        """End the trace with the question which configuration of a launch is taken, of those that its tuner keeps."""
        functions, kept = tuple(function for function in self.table.functions if function is not None), self.kept[id(launch)]
        configs = tuple(replace(launch.configs[place], before=()) for place in kept)
        key, tensor = key_of_choice(tuner), self.recorder.ids.tensor
        self.asked = question(launch.function, functions, dict(launch.args), configs, tensor, key, kept)
        raise NeedsKernel(self.asked)

    def _tuned_launch(
        self, found: list[tuple[int, dict[str, Value], Config]], hooks: list[list[Step]], line: int, together: int | None,
        tuning: Tuning | None,
    ) -> Launch:  # fmt: skip
        """One launch of several configurations. What all hooks do alike is recorded before it."""
        if all(hook == hooks[0] for hook in hooks):
            for step in hooks[0]:
                self.recorder.launch(step)
            hooks = [[] for _ in hooks]
        function, first, _ = found[0]
        configs = []
        for (other, values, config), hook in zip(found, hooks, strict=True):
            before = tuple(step for step in hook if isinstance(step, Op))
            if len(before) < len(hook):
                raise Untraceable("the hooks of an autotuner's configurations launch different kernels; let all do the same")
            differing = {} if other == function and _same(values, first) else _differing(values, first)
            if other != function or differing is None:
                raise Untraceable("an autotuner's configurations differ in the kernel or in the tensors that it is given")
            configs.append(replace(config, args=differing, before=before) if differing or before else config)
        return Launch(function, first, self.configs.together(configs), line, together, tuning)


def _same(values: dict[str, Value], first: dict[str, Value]) -> bool:
    """Whether arguments are the same ones, of the same types."""
    return values.keys() == first.keys() and all(
        value is first[name] or (type(value) is type(first[name]) and value == first[name]) for name, value in values.items()
    )


def _differing(values: dict[str, Value], first: dict[str, Value]) -> dict[str, Value] | None:
    """The numbers among a configuration's arguments that are others than the first one's; None where anything else is."""
    mine, theirs = _without_blocks(values), _without_blocks(first)
    differing = {name: value for name, value in mine.items() if name not in theirs or value != theirs[name]}
    numbers = all(isinstance(value, (int, float)) for name in differing for value in (mine[name], theirs.get(name)))
    return differing if mine.keys() == theirs.keys() and numbers else None


def _run_one(tuner: Any, config: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Run the kernel in one configuration with the checks of `Autotuner.run`: where there are several, each is tried first, on
    tensors that are reset or restored by name, and only the best one's options may not be given twice."""
    chosen = config.all_kwargs()
    if len(tuner.configs) > 1:
        given = {**tuner.nargs, **kwargs, **chosen}
        if not tuner.user_defined_pre_hook:
            for name in tuner.reset_to_zero:
                _ = given[name].zero_
            for name in tuner.restore_value:
                _ = given[name].clone
        if kwargs.keys() & chosen.keys():
            tuner.fn.run(*args, **{**kwargs, **chosen})
    tuner.fn.run(*args, **kwargs, **chosen)


def _without_blocks(values: dict[str, Value]) -> dict[str, Value]:
    """A launch's arguments without the block shapes of descriptors, which are each configuration's own (`Config.blocks`)."""
    return {name: replace(value, block_shape=()) if isinstance(value, Descriptor) else value for name, value in values.items()}
