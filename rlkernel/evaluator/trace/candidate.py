"""The tracer child's one job: candidate source in, Programs or a verdict out.

Runs untrusted Python. It is called in a locked process (`sandbox.lock`) that dies afterwards; nothing here needs to survive
what the candidate does, because a forged result gains nothing (see `program/schema.py`).
"""

from __future__ import annotations

import io
import linecache
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from triton.backends.compiler import GPUTarget

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.program.compiled_ahead import KernelFacts
from rlkernel.evaluator.program.replaced import hold, holding
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.program.variant import Kept, KeptConfigs, Traced, Variant
from rlkernel.evaluator.trace.calls import Call, Steady, alike, steady
from rlkernel.evaluator.trace.cuda_graphs import graphs
from rlkernel.evaluator.trace.forms import Alternatives
from rlkernel.evaluator.trace.host_numbers import compiled, names, noting
from rlkernel.evaluator.trace.inductor import load
from rlkernel.evaluator.trace.intercepting import intercepting
from rlkernel.evaluator.trace.kernels import KernelTable
from rlkernel.evaluator.trace.launches import LaunchRecorder
from rlkernel.evaluator.trace.lie import recording
from rlkernel.evaluator.trace.moving import to_gpu
from rlkernel.evaluator.trace.passing import decode_spec, encode_output
from rlkernel.evaluator.trace.pretrained import made_of_configs
from rlkernel.evaluator.trace.programs import NotSteady, Programs
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable
from rlkernel.evaluator.trace.shims import answering_as
from rlkernel.evaluator.trace.tuning import keeping
from rlkernel.evaluator.trace.warmup import NeedsKernel
from rlkernel.reference_text import shrink
from rlkernel.types import Status

FILENAME = "candidate.py"
INCONSISTENT = "forward does not do the same work on every call"
MOVED = (
    "forward does other work where its inputs lie elsewhere in memory: copy them into buffers that a CUDA graph reads, "
    "or capture it again for another data_ptr()"
)
WARM_CALLS = 4
"""How many calls may do other work than all later ones, where a CUDA graph is captured."""


class Verdict(Exception):
    """The candidate ended before there was a Program."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def _line_of(error: BaseException) -> str:
    """`line 12: ` and the text there, from the deepest frame of the candidate's file."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == FILENAME else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f"line {line}: "


def _describe(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    first = (text or "").strip().splitlines()[0][:300] if (text or "").strip() else ""
    return f"{_line_of(error)}{type(error).__name__}: {first}"


@dataclass(frozen=True, slots=True)
class _Whole:
    """A candidate traced at one size."""

    program: Program
    other: Program | None
    """In the other of train and eval mode, if it does other work there."""
    kept: dict[int, tuple[int, ...]]
    """Launch, by its identity -> the configurations that its tuner keeps at this size."""


class _Trace:
    """One candidate at one size: executed, constructed, and called several times."""

    def __init__(
        self, source: str, profile: DeviceProfile, variant: Variant, known: Mapping[str, KernelFacts], warm: int
    ) -> None:
        self.known = known
        self.warm = warm
        """How many calls prepare, whatever they do."""
        self.source = shrink(source, variant.constants)
        self.variant = variant
        self.profile = profile
        self.recorder = Recorder(keeps_switches=True)
        self.table = KernelTable()
        self.alternatives = Alternatives()
        self._begin_call: Callable[[], None] = lambda: None
        """Called before each call of forward."""

    def run(self) -> _Whole:
        """Raises Verdict, and NeedsKernel where host code compiles a kernel of which nothing is known."""
        target = GPUTarget("cuda", self.profile.arch, 32)
        with (
            answering_as(self.profile),
            intercepting(self.recorder, self.table, FILENAME, target, self.profile.properties, self.known) as launches,
            graphs(self.recorder, launches.kept),
            recording(self.recorder),
            noting() as refused,
        ):
            try:
                return self._run(launches)
            finally:  # whatever the candidate has made of it
                if launches.asked is not None:
                    raise NeedsKernel(launches.asked)
                if refused:
                    raise Verdict(Status.UNTRACEABLE, f"{_line_of(refused[0])}{refused[0]}")

    def _guard(self, status: Status, call: Any, *args: Any, **kwargs: Any) -> Any:
        """Candidate code runs inside: whatever it raises becomes its verdict."""
        try:
            return call(*args, **kwargs)
        except NeedsKernel:
            raise
        except Untraceable as error:
            raise Verdict(Status.UNTRACEABLE, f"{_line_of(error)}{error}") from error
        except BaseException as error:  # the candidate's failure becomes data, SystemExit included
            if "meta tensor" in str(error) or "on meta" in str(error):
                raise Verdict(Status.UNTRACEABLE, f"{_line_of(error)}the host needs a tensor's value") from error
            raise Verdict(status, _describe(error)) from error

    def _construct(self) -> tuple[nn.Module, list[int]]:
        module = types.ModuleType("candidate")
        module.__file__ = FILENAME
        sys.modules["candidate"] = module
        module.__dict__.update(names())
        with made_of_configs(self.variant.init_args):
            self._guard(Status.INVALID, lambda: exec(compiled(self.source, FILENAME), module.__dict__))
        cls = module.__dict__.get("ModelNew")
        if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
            raise Verdict(Status.INVALID, "no class ModelNew(nn.Module): define one")
        ids: list[int] = []
        args, kwargs = decode_spec(self.variant.init_args, self.recorder, ids)
        self.recorder.reading.inputs.clear()  # what the constructor is given is known when the module is
        with made_of_configs(self.variant.init_args):
            model = self._guard(Status.INVALID, cls, *args, **kwargs)
        if not isinstance(model, nn.Module):
            raise Verdict(Status.INVALID, "ModelNew() did not give an nn.Module")
        return model, ids

    def _forward(self, model: nn.Module) -> Call:
        """Call forward on fresh stand-ins. Raises Verdict."""
        recorder, ids = self.recorder, list[int]()
        self._begin_call()
        began, before = (len(recorder.ids), len(recorder.numbers)), self._state(model)
        args = decode_spec(self.variant.inputs, recorder, ids)
        recorder.phase()
        recorder.ids.begin(ids)
        recorder.reading.begin()
        result = self._guard(Status.RUNTIME_ERROR, _called, model, args)
        output = self._guard(Status.UNTRACEABLE, encode_output, result, recorder)
        after = self._state(model)
        reads = self._guard(Status.UNTRACEABLE, recorder.reading.finish)
        return Call(began, tuple(ids), tuple(reads), tuple(recorder.phase()), output, before, after, self.alternatives)

    def _move(self, model: nn.Module, found: Steady) -> None:
        """Inputs lie elsewhere from now on, and forward must come to do the same work there. Raises Verdict."""
        self.recorder.ids.move_inputs()
        since = len(self.recorder.ids), len(self.recorder.numbers)
        if not any(alike(found.call, self._forward(model), found.carried, since) for _ in range(WARM_CALLS + 2)):
            raise Verdict(Status.INCONSISTENT, MOVED)

    def _state(self, model: nn.Module) -> dict[str, int]:
        """The tensor of each parameter and buffer."""
        named = self._guard(Status.INVALID, _named_tensors, model)
        return {name: self._guard(Status.UNTRACEABLE, self.recorder.ids.of, tensor) for name, tensor in named}

    def _run(self, launches: LaunchRecorder) -> _Whole:
        self._begin_call = launches.choices.begin_call
        model, init_ids = self._construct()
        recorder = self.recorder
        self._guard(Status.INVALID, hold, model, self.variant.replaced)
        self._guard(Status.INVALID, to_gpu, model, recorder)
        state = self._state(model)
        recorder.reading.state |= {recorder.ids.storage(number) for number in state.values()}
        start = Program((), tuple(init_ids), tuple(recorder.phase()), state, (), (), None)
        training, modes = self._guard(Status.RUNTIME_ERROR, _modes, model)
        usual = steady(lambda: self._forward(model), self.warm)
        if usual is None:
            raise Verdict(Status.INCONSISTENT, INCONSISTENT)
        self._guard(Status.RUNTIME_ERROR, model.train, not training)
        flipped = self._forward(model)
        other: Steady | None = None
        if not alike(usual.call, flipped, usual.carried):
            calls = iter([flipped])
            other = steady(lambda: next(calls, None) or self._forward(model), self.warm)
            same = other is not None and alike(usual.call, other.call, usual.carried)
            if other is None or (same and other.prepared and not self.warm):
                raise Verdict(Status.INCONSISTENT, INCONSISTENT)
            other = None if same else other
        self._guard(Status.RUNTIME_ERROR, _set_modes, modes)
        if not alike(usual.call, self._forward(model), usual.carried):
            raise Verdict(Status.INCONSISTENT, INCONSISTENT)
        if recorder.captured or recorder.ids.addresses.asked:
            self._move(model, usual)
            self._guard(Status.RUNTIME_ERROR, model.train, not training)
            self._move(model, other or usual)
        start = replace(start, functions=tuple(f for f in self.table.functions if f is not None))
        programs = Programs(start, recorder)
        try:
            return _Whole(programs.usual(usual), None if other is None else programs.other(other, usual), launches.kept)
        except NotSteady as error:
            raise Verdict(error.status, str(error)) from None


def _named_tensors(model: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """The parameters and buffers of a module, by name."""
    return [*nn.Module.named_parameters(model), *nn.Module.named_buffers(model)]


def _modes(model: nn.Module) -> tuple[bool, list[tuple[nn.Module, bool]]]:
    """Whether a module is in train mode, and the same of each of its parts."""
    return model.training, [(module, module.training) for module in nn.Module.modules(model)]


def _set_modes(modes: list[tuple[nn.Module, bool]]) -> None:
    """Put modules back into the train or eval mode of before: a part may be in another one than the whole."""
    for module, training in modes:
        module.training = training


def _called(model: nn.Module, args: list[Any]) -> Any:
    """What forward returns; what it assigns to the attributes that the reference replaces is kept in their memory."""
    with holding(model):
        return model(*args)


def _kept(whole: _Whole) -> Kept:
    """The configurations that are kept at one size."""

    def rows(program: Program | None) -> tuple[KeptConfigs, ...]:
        launches = () if program is None else program.launches
        if all(len(launch.configs) == 1 for launch in launches):
            return ()
        everything = [tuple(range(len(launch.configs))) for launch in launches]
        return tuple(
            KeptConfigs(launch.function, len(launch.configs), whole.kept.get(id(launch), own))
            for launch, own in zip(launches, everything, strict=True)
        )

    return Kept(rows(whole.program), rows(whole.other))


def _prune(wholes: list[_Whole], timed: Kept) -> tuple[Traced, ...]:
    """The traces, every size with the configurations that are kept at the size that is timed: a configuration is chosen there,
    and must be the same one where it is checked."""
    return tuple(
        Traced(keeping(one.program, timed.usual), None if one.other is None else keeping(one.other, timed.flipped))
        for one in wholes
    )


def trace(
    source: str, profile: DeviceProfile, variants: Sequence[Variant], known: Sequence[KernelFacts] = (),
    timed: Kept | None = None,
) -> tuple[tuple[Traced, ...], Kept]:  # fmt: skip
    """What the candidate `source` does at each size, as if `profile` were there, and which configurations it keeps at the size
    that is timed. `known`: of the kernels that it compiles ahead. `timed`: what is kept at the size that is timed, if it was
    traced before; else it is the last of `variants`. Raises Verdict, and NeedsKernel for a kernel that is not known."""
    linecache.cache[FILENAME] = (len(source), None, io.StringIO(source, newline=None).readlines(), FILENAME)
    load(source)
    facts = {one.key: one for one in known}
    try:
        wholes = [_whole(source, profile, variant, facts) for variant in variants]
    except NeedsKernel as needs:
        if needs.asked.chooses and timed is None:  # what is fast is found at the size that is timed
            _whole(source, profile, variants[-1], facts)
        raise
    timed = _kept(wholes[-1]) if timed is None else timed
    return _prune(wholes, timed), timed


def _whole(source: str, profile: DeviceProfile, variant: Variant, known: Mapping[str, KernelFacts]) -> _Whole:
    """The candidate traced at one size. What captures a CUDA graph and does other work in its first calls than later, as what
    warms up does, is traced again behind more calls. Raises Verdict."""
    first = _Trace(source, profile, variant, known, 0)
    try:
        return first.run()
    except Verdict as found:
        if found.detail != INCONSISTENT or not first.recorder.captured:
            raise
    return _Trace(source, profile, variant, known, WARM_CALLS).run()
