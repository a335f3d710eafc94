"""A reference in float64, although its text casts: `a @ w.float()` of doubles has operands of two dtypes, and does not run.

So does `torch.zeros(n)` beside doubles. Where a reference fails in float64 for such a reason, it is called again with everything
that it casts to a narrower floating-point dtype, or makes in one, in float64. Then its own roundings are part of its own error.
So it is where what it gives in float64 has half precision: with `x = x.bfloat16()` in front of twenty products it would have no
error at all. A text that asks for its dtypes, as `assert x.dtype == torch.float32` does, is told those that it usually sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rlkernel.evaluator.program.codes import HALF

NARROW = (torch.float32, torch.float16, torch.bfloat16)
"""The dtypes that become float64."""


class _Wide(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Operators that are asked for a narrow dtype are asked for float64."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        options = dict(kwargs or {})
        if options.get("dtype") in NARROW:
            options["dtype"] = torch.float64
        return func(*args, **options)


def _of_numbers(args: Sequence[Any]) -> bool:
    """Whether a tensor among an operator's arguments has floating-point numbers."""
    return any(isinstance(leaf, torch.Tensor) and leaf.is_floating_point() for leaf in tree_leaves(args))


class _WideNumbers(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Operators that make narrow numbers of whole ones, or of nothing, make float64 of them. Random numbers are those that are
    drawn usually: in float64 they would be others, and what is left out of them no error."""

    def __init__(self, usual: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.usual = usual
        """The dtype of what is made where nobody asks for one."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        options = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded in func.tags:
            return self._drawn(func, args, options)
        if options.get("dtype") is torch.float32 and not _of_numbers(args):
            options["dtype"] = torch.float64
        return func(*args, **options)

    def _drawn(self, func: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """What an operator gives that may draw random numbers."""
        if any(one.name == "dtype" and one.default_value is None for one in func._schema.arguments):
            return func(*args, **{"dtype": self.usual} | options)
        if not func._schema.is_mutable or args[0].dtype is not torch.float64:
            return func(*args, **options)
        return args[0].copy_(func(args[0].to(self.usual), *args[1:], **options))


@contextmanager
def _double_by_default() -> Iterator[torch.dtype]:
    """Inside, the default dtype is float64. Gives the usual one."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield usual
    finally:
        torch.set_default_dtype(usual)


@contextmanager
def wide_numbers() -> Iterator[None]:
    """Inside, what would be made in float32 of whole numbers, such as an angle of a place, is made in float64: then what float32
    loses there is part of the reference's own error, and what its text rounds on purpose is rounded still."""
    with _double_by_default() as usual, _WideNumbers(usual):
        yield


@contextmanager
def without_casts() -> Iterator[None]:
    """Inside, what would be cast to a narrower floating-point dtype, or made in one, is float64."""
    with _double_by_default(), _Wide():  # type: ignore[no-untyped-call]
        yield


class _UsualDtypes(TorchFunctionMode):
    """Tensors of float64 say the dtype that they usually have."""

    def __init__(self, given: Iterable[tuple[torch.Tensor, torch.dtype]]) -> None:
        super().__init__()
        self.kinds = {tensor.untyped_storage()._cdata: dtype for tensor, dtype in given if tensor.dtype is torch.float64}
        """Identity of a storage -> its numbers' usual dtype."""
        known = set(self.kinds.values())
        self.computed = known.pop() if len(known) == 1 else torch.float64
        """What computed tensors say: nobody knows which of several dtypes they would have."""

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if found is torch.float64 and func == torch.Tensor.dtype.__get__:  # type: ignore[attr-defined]
            return self.kinds.get(args[0].untyped_storage()._cdata, self.computed)
        return found


@contextmanager
def as_usual(given: Iterable[tuple[torch.Tensor, torch.dtype]]) -> Iterator[None]:
    """Inside, nothing is cast to a narrower dtype, and tensors of float64 say their usual ones. given: arguments, parameters and
    buffers, with the dtypes that they have outside."""
    with without_casts(), _UsualDtypes(given):
        yield


Usual = Iterable[tuple[torch.Tensor, torch.dtype]]
"""Arguments, parameters and buffers in float64, each with the dtype that it usually has."""
Way = Callable[[Usual], AbstractContextManager[None]]
"""In what a reference is called in float64."""
WAYS: tuple[Way, ...] = (lambda given: nullcontext(), lambda given: without_casts(), as_usual)
"""The ways that are tried one after the other, until the reference runs."""
FINER: tuple[Way, ...] = (lambda given: wide_numbers(),)
"""The way in which a miss is looked at once more."""


def still_rounds(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether results of a call in float64 have half precision, because the text casts to it: what it rounds on the way is then
    rounded there, too."""
    return any(output.dtype in HALF for output in outputs)


def usual_dtypes(
    state: Mapping[str, torch.Tensor], kinds: Mapping[str, torch.dtype],
    arguments: Sequence[torch.Tensor], dtypes: Sequence[torch.dtype],
) -> Usual:  # fmt: skip
    """The parameters and buffers by name, with their `kinds`, and then the arguments, with theirs. State that a call has made has
    no usual dtype."""
    return [*((tensor, kinds[name]) for name, tensor in state.items() if name in kinds), *zip(arguments, dtypes, strict=True)]
