"""What an autotuned launch does in the first call of forward: its autotuner has run the kernel on the same tensors before.

Triton times each configuration on the tensors of the launch, so that a kernel which changes what it reads has changed it many
times before its first result. The names in `reset_to_zero` and `restore_value` are set to zero or put back.
Example: a kernel writes `tanh(x)` over `x`; the first call of forward returns the tanh of a tanh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.evaluator.program.schema import Launch
from rlkernel.evaluator.program.values import Descriptor

FIRST_CALL = (
    "the first call of forward is wrong: an autotuner runs the kernel several times on the same tensors, and the kernel changes "
    "what it reads. Write to another tensor, or name the argument in restore_value or reset_to_zero"
)


@dataclass(frozen=True, slots=True)
class Touched:
    """The parameters, pointers or descriptors, through which a compiled kernel may store and load; upper bounds."""

    stores: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()

    def also(self, other: Touched) -> Touched:
        """What either of two kernels touches."""
        return Touched(tuple(sorted({*self.stores, *other.stores})), tuple(sorted({*self.loads, *other.loads})))


def may_show(launch: Launch, touched: Touched, args: Mapping[str, Any]) -> bool:
    """Whether a launch's result may be another one where its autotuner has run the kernel before: the kernel may store to memory
    that it may load from, and which is not put back, or it may load what is set to zero."""
    if launch.tuning is None:
        return False
    stored, loaded = (_storages(names, args) for names in (touched.stores, touched.loads))
    put_back, reset = (_storages(names, args) for names in (launch.tuning.restored, launch.tuning.reset))
    return bool((stored - put_back | reset) & loaded)


def kept_by_none(launch: Launch, touched: Touched, args: Mapping[str, Any]) -> list[torch.Tensor]:
    """The tensors in which the trials of a launch's autotuner may leave something: stored to, and neither put back nor reset."""
    if launch.tuning is None:
        return []
    again = _storages((*launch.tuning.restored, *launch.tuning.reset), args)
    return [tensor for tensor in _tensors(touched.stores, args) if tensor.untyped_storage()._cdata not in again]


def as_first(launch: Launch, args: Mapping[str, Any], run: Callable[[], None], others: Sequence[Callable[[], None]] = ()) -> None:
    """Do what a launch of the first call does, whose kernel `run` runs once: its trials, those of `others`, too, and then the
    launch itself."""
    if launch.tuning is None:
        run()
        return
    reset, put_back = (_tensors(names, args) for names in (launch.tuning.reset, launch.tuning.restored))
    kept = [tensor.clone() for tensor in put_back]
    for trial in (*others, run):
        for tensor in reset:
            tensor.zero_()
        trial()
        for tensor, before in zip(put_back, kept, strict=True):
            tensor.copy_(before)
    for tensor in reset:
        tensor.zero_()
    run()


def _tensors(names: Iterable[str], args: Mapping[str, Any]) -> list[torch.Tensor]:
    given = (args.get(name) for name in names)
    values = [value.base if isinstance(value, Descriptor) else value for value in given]
    return [value for value in values if isinstance(value, torch.Tensor)]


def _storages(names: Iterable[str], args: Mapping[str, Any]) -> set[int]:
    return {tensor.untyped_storage()._cdata for tensor in _tensors(names, args)}
