"""`kernel.warmup(...)` and `kernel.best_config` in a trace: what is known of a kernel, or the question for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch

from rlkernel.evaluator.program.compiled_ahead import Asked, KernelFacts
from rlkernel.evaluator.program.reached import kernel_text
from rlkernel.evaluator.program.schema import Config, Descriptor, Function, Launch, Program, TensorSpec
from rlkernel.evaluator.program.values import ScalarRef, TensorRef, Value
from rlkernel.evaluator.program.variant import Specs
from rlkernel.evaluator.trace.host_numbers import UnknownValue, Untraceable


class NeedsKernel(BaseException):
    """The trace cannot go on without the facts of a kernel. No `except Exception` of a candidate's stops it."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.key)
        self.asked = asked


class Handle:
    """What `kernel.warmup` gives: the facts of a compiled kernel, which can be launched."""

    def __init__(self, facts: KernelFacts, name: str, count: int, launch: Callable[..., None]) -> None:
        """`count`: of the kernel's parameters; `launch`: records a launch, given its grid and all arguments."""
        self.n_regs, self.n_spills, self.name = facts.registers, facts.spills, name
        self.metadata = SimpleNamespace(name=name, shared=facts.shared_bytes, num_warps=facts.num_warps, num_ctas=facts.num_ctas)
        self._count, self._launch = count, launch

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Untraceable(f"the host asks what was compiled (.{name}), which is not known while it is traced")

    def _init_handles(self) -> None:
        """Load the kernel, as the tutorials do before they read its registers: there is nothing to do."""

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def run(*args: Any, stream: Any = None) -> None:
            if len(args) != self._count:  # the launcher's own rule: constants are passed, too
                raise TypeError(f"kernel {self.name} takes {self._count} arguments, {len(args)} were given")
            self._launch((grid[0], grid[1], grid[2]), args)

        return run


def question(
    function: int,
    functions: tuple[Function, ...],
    values: dict[str, Value],
    configs: tuple[Config, ...],
    tensor: Callable[[int], torch.Tensor],
    key: str | None = None,
    offered: tuple[int, ...] = (),
) -> Asked:
    """What to ask for a kernel with these arguments. `tensor`: of a number in the trace; `key`: by which the answer is known, by
    default its text and all arguments; `offered`: see `Asked`. Raises Untraceable for arguments that are numbers of weights."""
    numbers: dict[int, int] = {}
    given: dict[str, Value] = {}
    for name, value in values.items():
        if isinstance(value, ScalarRef):
            raise UnknownValue(f"a kernel that the host asks about is given a parameter's value as {name}; pass a plain number")
        base = value.base if isinstance(value, Descriptor) else value
        if isinstance(base, TensorRef):
            base = TensorRef(numbers.setdefault(base.number, len(numbers)))
        given[name] = replace(value, base=base) if isinstance(value, Descriptor) else base
    launch = Launch(function, given, configs, 0)
    specs = Specs((), tuple(_spec(tensor(number)) for number in numbers))
    program = Program(functions, (), (), {}, tuple(numbers.values()), (launch,), None)
    return Asked(key or _key(launch, functions, specs), program, specs, offered)


def _key(launch: Launch, functions: tuple[Function, ...], specs: Specs) -> str:
    config = launch.configs[0]
    text = kernel_text(functions, launch.function, config.constants)  # with its helpers, wherever they stand in the table
    return hashlib.sha256(repr((text, launch.args, config.options, config.blocks, config.args, specs)).encode()).hexdigest()[:32]


def _spec(tensor: torch.Tensor) -> TensorSpec:
    with torch._C.DisableTorchFunction():
        return TensorSpec(tuple(tensor.shape), tuple(tensor.stride()), str(tensor.dtype).removeprefix("torch."))
