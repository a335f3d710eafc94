"""Executes a Program's steps on real (or meta) tensors. The same code for every device; launches are handed to a callback.

Only allow-listed ATen operators run. Fresh memory is filled with random bytes, so that nothing reads what it did not write.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from rlkernel.evaluator.program import recurrent
from rlkernel.evaluator.program.layouts import Strides, as_on_cuda, laid_out, strides_of
from rlkernel.evaluator.program.schema import Config, Launch, Literal, Op, Program, Step
from rlkernel.evaluator.program.values import Descriptor, DeviceRef, MalformedProgram, Pairs, TensorRef, TorchName, Value
from rlkernel.reference import seed_generators

LaunchCall = Callable[[Launch, Config, dict[str, Any]], None]
"""(launch, chosen config, parameter -> tensor, descriptor or scalar)"""
Observer = Callable[[int, Step, Sequence[torch.Tensor], Sequence[torch.Tensor]], None]
"""(index in forward, step, tensors read, tensors returned or passed to a launch)"""
Place = Callable[[torch.Tensor], torch.Tensor]
"""Moves a tensor with memory of its own elsewhere, e.g. between red zones; returns the tensor there."""

_PRIVATE = {
    "_softmax", "_log_softmax", "_to_copy", "_unsafe_view", "_reshape_alias", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
    "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "_weight_norm_interface", "_prelu_kernel",
    "_index_put_impl_",
    "_cdist_forward", "_pdist_forward", "_embedding_bag", "_embedding_bag_forward_only", "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d", "_upsample_bilinear2d_aa", "_trilinear", "_unsafe_index", "_unsafe_index_put", "_stack", "_conj",
    "_neg_view", "_fft_c2c", "_fft_r2c", "_fft_c2r", "_linalg_det", "_linalg_solve_ex", "_linalg_svd", "_linalg_eigh",
    "_safe_softmax",
    "_fused_rms_norm", "_transformer_encoder_layer_fwd", "_scaled_dot_product_flash_attention_for_cpu", "_grouped_mm",
    "_scaled_mm",
    "_unsafe_masked_index", "_chunk_cat", "_is_all_true", "_assert_async", "_convolution",
}  # fmt: skip
_REFUSED = {
    "from_file", "set_", "set_data", "record_stream", "pin_memory", "item", "resize_", "resize", "copy_sparse_to_sparse_",
    "rename",
    "retain_grad", "requires_grad_", "to_mkldnn", "to_dense", "data", "is_pinned", "resize_as_", "resize_as_sparse_",
}  # fmt: skip
_WHOLE = {"scaled_dot_product_attention", "dropout", "dropout_", *recurrent.GATES}
"""Made of other operators, which depend on the device, but recorded whole. Of the rest a trace has the parts, whose cost is
known."""
_FRESH = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}


def allocates(step: Step) -> bool:
    """Whether a step makes memory without contents."""
    return isinstance(step, Op) and step.op.split(".")[1] in _FRESH and not writes(step)


def writes(step: Op) -> bool:
    """Whether an operator writes into one of its arguments: in place, or into `out`."""
    return any(a.alias_info is not None and a.alias_info.is_write for a in operator(step.op)._schema.arguments)


def tensors_in(args: Mapping[str, Any]) -> list[torch.Tensor]:
    """The tensors among a launch's arguments, those under descriptors included."""
    values = [value.base if isinstance(value, Descriptor) else value for value in args.values()]
    return [value for value in values if isinstance(value, torch.Tensor)]


class StepFailed(Exception):
    """An operator refused its arguments while replaying: the candidate's failure."""


@functools.cache
def operator(name: str) -> Any:
    """`aten.add.Tensor` -> the overload. Raises MalformedProgram unless it is allow-listed."""
    parts = name.split(".")
    if len(parts) != 3 or parts[0] != "aten":
        raise MalformedProgram(f"{name} is not an ATen operator")
    base = parts[1]
    if (base.startswith("_") and not base.startswith("__") and base not in _PRIVATE) or base in _REFUSED:
        raise MalformedProgram(f"operator {name} is not allowed")
    packet = getattr(torch.ops.aten, base, None)
    overload = getattr(packet, parts[2], None) if packet is not None else None
    if overload is None:
        raise MalformedProgram(f"{name} is not an ATen operator of this torch")
    if base not in _WHOLE and torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CompositeImplicitAutograd"):
        raise MalformedProgram(f"operator {name} is made of others, which a trace would name")
    return overload


@functools.cache
def _places(name: str) -> dict[str, int]:
    """Argument of an operator -> its place in the schema."""
    return {argument.name: place for place, argument in enumerate(operator(name)._schema.arguments)}


def literal_tensor(step: Literal, device: torch.device) -> torch.Tensor:
    dtype = getattr(torch, step.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise MalformedProgram(f"unknown dtype {step.dtype}")
    raw = bytearray(base64.b64decode(step.data))
    flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return flat.reshape(step.shape).clone().to(device)


def poison(tensor: torch.Tensor, generator: torch.Generator) -> None:
    """Overwrite the whole storage of `tensor` with random bytes, without touching the default generator."""
    storage = tensor.untyped_storage()
    if storage.nbytes():
        torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage).random_(0, 256, generator=generator)


class Replay:
    """One execution of a Program on `device`: `init` once, then `forward` any number of times."""

    def __init__(
        self,
        program: Program,
        device: torch.device,
        launch: LaunchCall,
        *,
        configs: dict[int, int] | None = None,
        poison_seed: int = 0,
    ) -> None:
        self.program = program
        self.device = device
        self.launch = launch
        self.configs = configs or {}
        """Index of a forward step -> which of its launch's configs to use; the first by default. -1 - i: of step i of `__init__`.
        """
        self.values: dict[int, torch.Tensor] = {}
        self.place: Place | None = None
        """Where results of operators and literals go; None: where the operator put them."""
        self.strides: dict[int, Strides] = {}
        """Identity of an operator's step -> where the trace says that its results lie; empty: where the operator puts them."""
        self.noting = False
        """Whether `strides` are noted rather than used: on tensors without data."""
        self._poison = None if device.type == "meta" else torch.Generator(device).manual_seed(poison_seed)

    def init(
        self, init_inputs: Sequence[torch.Tensor], seed: int, given: Mapping[str, torch.Tensor] | None = None
    ) -> dict[str, torch.Tensor]:
        """Construct: returns parameters and buffers by name. `given`: values of the state, for what `__init__` makes of it; the
        caller copies them into what is returned."""
        self._bind(self.program.init_inputs, init_inputs)
        seed_generators(seed)
        for index, step in enumerate(self.program.init):
            if given:
                self._give(step, given)
            self._step(-1 - index, step, None)
        return {name: self._value(TensorRef(number)) for name, number in self.program.state.items()}

    def _give(self, step: Step, given: Mapping[str, torch.Tensor]) -> None:
        """Before a step of `__init__` reads state that is made by then, the state gets its given values: what is folded from
        weights is folded from the weights that forward is judged with."""
        if isinstance(step, Literal):
            return
        own = {n: self.values[number] for n, number in self.program.state.items() if n in given and number in self.values}
        if not own:
            return
        read = self._read_by(step)
        for name, tensor in own.items():
            weight = given[name]
            if tensor.untyped_storage()._cdata in read and (weight.shape, weight.dtype) == (tensor.shape, tensor.dtype):
                tensor.copy_(weight)

    def _read_by(self, step: Op | Launch) -> set[int]:
        """Storages that a step reads and does not only look at or fill."""
        if isinstance(step, Launch):
            return {t.untyped_storage()._cdata for t in tensors_in({n: self._value(v) for n, v in step.args.items()})}
        schema = operator(step.op)._schema
        if any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns):
            return set()  # a view
        values = dict(zip([a.name for a in schema.arguments], step.args, strict=False)) | step.kwargs
        written = {a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}
        found = [t for n, v in values.items() if n not in written for t in _flat([self._value(v)])]
        return {t.untyped_storage()._cdata for t in found if isinstance(t, torch.Tensor)}

    def forward(
        self, inputs: Sequence[torch.Tensor], seed: int, *, skip: frozenset[int] = frozenset(), observe: Observer | None = None,
        fresh: Mapping[int, torch.Tensor] | None = None,
    ) -> Any:  # fmt: skip
        """Returns the output's structure with tensors in it. Launches of the functions in `skip` do nothing.

        `fresh`: memory to use at the steps that allocate, made and poisoned by the caller; elsewhere it is made here.
        """
        self._bind(self.program.inputs, inputs)
        seed_generators(seed)
        for index, step in enumerate(self.program.forward):
            if fresh is not None and index in fresh:
                assert isinstance(step, Op)
                number = step.outs[0]
                if number is not None:
                    self.values[number] = fresh[index]
            elif not (isinstance(step, Launch) and step.function in skip):
                self._step(index, step, observe)
        return self._value(self.program.output)

    def _bind(self, ids: Sequence[int], tensors: Sequence[torch.Tensor]) -> None:
        if len(ids) != len(tensors):
            raise MalformedProgram(f"the Program takes {len(ids)} tensors, {len(tensors)} are given")
        self.values.update(zip(ids, tensors, strict=True))

    def _value(self, value: Value) -> Any:
        """A value with its tensors."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (list, tuple)):
            return [self._value(item) for item in value]
        if isinstance(value, TensorRef):
            tensor = self.values.get(value.number)
            if tensor is None:
                raise MalformedProgram(f"tensor {value.number} is used before it is made")
            return tensor
        if isinstance(value, Descriptor):
            return replace(value, base=self._value(value.base))
        if isinstance(value, DeviceRef):
            return self.device
        if isinstance(value, TorchName):
            found = getattr(torch, value.name, None)
            if not isinstance(found, getattr(torch, value.kind)):
                raise MalformedProgram(f"unknown {value.kind} {value.name}")
            return found
        if isinstance(value, Pairs):
            return {key: self._value(item) for key, item in value.items}
        raise MalformedProgram(f"a {type(value).__name__} where a tensor or a number belongs")

    def _step(self, index: int, step: Step, observe: Observer | None) -> None:
        if isinstance(step, Literal):
            literal = literal_tensor(step, self.device)
            self.values[step.out] = literal if self.place is None else self.place(literal)
            return
        if isinstance(step, Launch):
            config = step.configs[self.configs.get(index, 0)]
            args = {name: self._value(value) for name, value in step.args.items()}
            self.launch(step, config, args)
            if observe is not None:
                tensors = tensors_in(args)
                observe(index, step, tensors, tensors)
            return
        self._operator(index, step, observe)

    def _operator(self, index: int, step: Op, observe: Observer | None) -> None:
        function, places = self._function(step), _places(step.op)
        args = [self._value(a) for a in step.args]
        # In the schema's order, so that observers find a weight where it belongs.
        given = sorted(step.kwargs.items(), key=lambda item: places.get(item[0], len(places)))
        kwargs = {k: self._value(v) for k, v in given if k != "pin_memory"}
        if "device" in places:
            kwargs["device"] = self.device
        read = [v for v in _flat([*args, *kwargs.values()]) if isinstance(v, torch.Tensor)]
        self._stay_on_device(step.op, read)
        try:
            result = function(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
            # The same call worked on meta tensors: what fails now is the candidate's use of values, or memory.
            raise StepFailed(f"{step.op}: {(str(error).splitlines() or [type(error).__name__])[0][:200]}") from error
        result = as_on_cuda(step.op, read, result)
        outs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(outs) != len(step.outs):
            raise MalformedProgram(f"{step.op} returns {len(outs)} values, not {len(step.outs)}")
        if any(isinstance(o, torch.Tensor) and o.device.type != self.device.type for o in outs):
            raise MalformedProgram(f"{step.op} leaves the device")
        if self.noting:
            self.strides[id(step)] = strides_of(outs)
        elif id(step) in self.strides:
            outs = laid_out(outs, self.strides[id(step)], read)
        if self._poison is not None and allocates(step):
            poison(outs[0], self._poison)
        if self.place is not None:
            outs = self._placed(outs, read)
        for number, out in zip(step.outs, outs, strict=True):
            if number is not None and isinstance(out, torch.Tensor):
                self.values[number] = out
        if observe is not None:
            observe(index, step, read, [o for o in outs if isinstance(o, torch.Tensor)])

    def _function(self, step: Op) -> Callable[..., Any]:
        """What to call for an operator: itself, or what knows only the shapes of its results, where there is no data."""
        quick = self.device.type == "meta" and recurrent.is_recurrent(step.op)
        return recurrent.without_data if quick else operator(step.op)

    def _stay_on_device(self, op: str, read: Sequence[torch.Tensor]) -> None:
        """Operators on the host's memory trust their arguments: none may slip in beside the device. Raises MalformedProgram."""
        if any(t.device.type != self.device.type for t in read):
            raise MalformedProgram(f"{op} is given a tensor of another device")

    def _placed(self, outs: tuple[Any, ...], read: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """`outs` with new memory moved by `place`; views and arguments stay where they are."""
        assert self.place is not None
        known = {t.untyped_storage()._cdata for t in read}
        return tuple(
            self.place(o) if isinstance(o, torch.Tensor) and o.untyped_storage()._cdata not in known else o for o in outs
        )


def noted_strides(program: Program, init_inputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> dict[int, Strides]:
    """`Replay.strides` of a Program. The arguments are tensors without data."""
    replay = Replay(program, torch.device("meta"), lambda *call: None)
    replay.noting = True
    replay.init(init_inputs, 0)
    replay.forward(inputs, 0)
    return replay.strides


def _flat(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend(_flat(value) if isinstance(value, (list, tuple)) else [value])
    return found
