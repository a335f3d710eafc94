"""What the reference would give on tensor cores: in float64, with the operands of its products rounded to tf32 or half precision.

tf32 has float32's range and 10 bits of mantissa. Some units round to the nearest value, others cut the bits off; a candidate may
do either. Operators without products are left alone, so that a reference without products has no error here. Source: ours.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from rlkernel.evaluator.judging.errors.comparison import compare_tensor
from rlkernel.evaluator.judging.errors.own_error import Cores
from rlkernel.evaluator.judging.references.reference_calls import call, holds_truths, mapped, state_of
from rlkernel.evaluator.messages.judgement import Balance, Tolerance
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.folding import OUT_OF_RANGE
from rlkernel.evaluator.program.operators import base_name
from rlkernel.types import Precision

PRODUCTS = frozenset({
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "inner", "linear", "matmul", "_addmm_activation",
    "bilinear", "_trilinear", "_int_mm", "_grouped_mm", "chain_matmul", "linalg_multi_dot",
    "convolution", "_convolution", "convolution_overrideable", "cudnn_convolution", "cudnn_convolution_relu",
    "cudnn_convolution_add_relu", "cudnn_convolution_transpose", "mkldnn_convolution", "conv_tbc", "conv_depthwise3d",
    "_conv_depthwise2d", "slow_conv3d_forward", "_slow_conv2d_forward", "slow_conv_dilated2d", "slow_conv_dilated3d",
    "slow_conv_transpose2d", "slow_conv_transpose3d",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", "_native_multi_head_attention",
    "_transformer_encoder_layer_fwd", "_cudnn_rnn", "mkldnn_rnn_layer", "lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell",
    "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
})  # fmt: skip
"""ATen operators with a product in them, by name: their operands are rounded, and what they add is not (see `_ADDED`)."""
_ADDED = {"addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation"}
"""Operators whose first argument is added to a product."""
_LOW = 52 - 10
"""Bits of a float64's mantissa that tf32 does not have."""

Operand = int | str
"""An argument of forward, by its place, or a parameter or buffer, by its name."""

OTHERWISE = (1.19, 1.41, 1.68)
"""Factors before rounding that give other roundings, of which one alone may be lucky: in a softmax of large scores a few rows
with equal maxima make most of the error. Of 1,500 attentions of 40 such rows 6.5 % erred by more than one rounding allows, and
0.7 % by more than the worst of four."""
Rounding = Callable[[torch.Tensor], torch.Tensor]
"""Rounds a tensor of float64 values."""
Exact = Callable[[], list[torch.Tensor] | None]
"""Gives the reference's outputs in float64 and leaves its module as it is; None where it does not run in float64."""


def nearest(values: torch.Tensor) -> torch.Tensor:
    """Float64 values rounded to tf32's 10 bits of mantissa, halves away from zero, as `cvt.rna.tf32` does."""
    raw = values.view(torch.int64) + (1 << (_LOW - 1))
    return raw.bitwise_and_(-1 << _LOW).view(torch.float64)


def nearest_otherwise(factor: float) -> Rounding:
    """Rounding to tf32 that goes the other way for other values than `nearest`, as another order of a kernel's scaling does."""
    return lambda values: nearest(values * factor) / factor


def truncated(values: torch.Tensor) -> torch.Tensor:
    """Float64 values cut off after tf32's 10 bits of mantissa, as a matrix unit does that reads float32."""
    return (values.view(torch.int64) & (-1 << _LOW)).view(torch.float64)


def half(values: torch.Tensor) -> torch.Tensor:
    """Float64 values rounded to float16, with its range."""
    return values.to(torch.float16).to(torch.float64)


class RoundedOperands(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, the operands of every product of float32 or float64 are rounded."""

    def __init__(self, rounding: Rounding) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rounding = rounding
        self.products = 0
        """How many operators had operands to round."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name = base_name(str(func))
        if name not in PRODUCTS:
            return func(*args, **(kwargs or {}))
        self.products += 1
        kept = 1 if name in _ADDED else 0
        if name.endswith("convolution") or "conv" in name or name == "linear":  # input, weight; then a bias
            return func(*tree_map(self._rounded, list(args[:2])), *args[2:], **(kwargs or {}))
        rounded = tree_map(self._rounded, list(args[kept:]))
        written = {a.name for a in func._schema.arguments if a.is_out}  # a copy of `out` would receive the result in its place
        named = {key: value if key in written else tree_map(self._rounded, value) for key, value in (kwargs or {}).items()}
        return func(*args[:kept], *rounded, **named)

    def _rounded(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype not in (torch.float32, torch.float64):
            return value
        return self.rounding(value.to(torch.float64)).to(value.dtype)


class _DirectProducts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, products are noted whose two operands are both known tensors, or views of these."""

    def __init__(self, known: Mapping[int, Operand]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known = known
        """Identity of a storage -> whose it is."""
        self.found: list[tuple[Operand, Operand]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name = base_name(str(func))
        first = 1 if name in _ADDED else 0
        operands = [a for a in args[first : first + 2] if isinstance(a, torch.Tensor)]
        if name in PRODUCTS and len(operands) == 2:
            one, other = (self.known.get(t.untyped_storage()._cdata) for t in operands)
            if one is not None and other is not None and one != other:
                self.found.append((one, other))
        return func(*args, **(kwargs or {}))


def balance_of(model: nn.Module, inputs: list[Any], seed: int) -> Balance | None:
    """What leads the inputs that are multiplied as they are, by parameters or other inputs, out of half precision's range; None
    where there is no such product. An input of truth values stays. `model` is left as it is."""
    model, inputs = copy.deepcopy(model), mapped(inputs, torch.clone)
    named: list[tuple[Operand, Any]] = [*enumerate(inputs), *state_of(model).items()]
    numbers = [(owner, x) for owner, x in named if isinstance(x, torch.Tensor) and holds_numbers(x)]
    known = {x.untyped_storage()._cdata: owner for owner, x in numbers if isinstance(owner, str) or not holds_truths(x)}
    mode = _DirectProducts(known)
    with _visible_products(), mode:
        call(model, inputs, seed)
    factors: dict[Operand, float] = {}
    for one, other in mode.found:
        if isinstance(other, int) and not isinstance(one, int):
            one, other = other, one  # an input first
        if isinstance(one, int):
            factors[one] = factors.get(one, 1.0 / OUT_OF_RANGE)
            factors.setdefault(other, 1.0 / factors[one])
    balance = Balance(
        {owner: factor for owner, factor in factors.items() if isinstance(owner, int)},
        {owner: factor for owner, factor in factors.items() if isinstance(owner, str)},
    )
    return balance if balance.inputs else None


@contextmanager
def _visible_products() -> Iterator[None]:
    """Attention is computed by products of its own, which a dispatch mode sees."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def cores_of(
    exact: Exact, found: Sequence[torch.Tensor], precision: Precision, *, several: bool = False
) -> tuple[list[Cores] | None, list[torch.Tensor] | None]:
    """Each output as tensor cores may give it. None where a candidate may not use them although the reference does not, or where
    they change nothing. `found`: the reference's outputs. several: round in several ways, for inputs at which tf32's error is a
    matter of luck. Then, where it was found out that there are no products, the exact outputs, which need not be computed
    again."""
    if precision is not Precision.PYTORCH or not any(t.dtype is torch.float32 for t in found):
        return None, None
    near, products = _rounded(exact, nearest)
    if near is None or not products:
        return None, near
    roundings = (truncated, *(nearest_otherwise(factor) for factor in OTHERWISE if several))
    sides = [_like(found, near)]
    for rounding in roundings:
        rounded = rounded_outputs(exact, rounding)
        if rounded is None:
            return None, None
        sides.append(_like(found, rounded))
    ways = zip(*sides, strict=True)
    return [Cores((near, *others), cut) for near, cut, *others in ways], None


def halved(exact: Exact, found: Sequence[torch.Tensor], allowed: Sequence[Tolerance]) -> bool:
    """Whether the products' operands in half precision make an output wrong, by twice what is allowed."""
    rounded = rounded_outputs(exact, half)
    outputs = [] if rounded is None else _like(found, rounded)
    return any(
        not compare_tensor(h, f, f, allowed=limit.times(2), overlapping=False, where="").matches
        for h, f, limit in zip(outputs, found, allowed, strict=False)
    )


def _like(found: Sequence[torch.Tensor], outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """`outputs` in the dtypes of `found`: float32 resolves tf32's errors, in half the memory."""
    return [o.to(f.dtype) for o, f in zip(outputs, found, strict=True)]


def rounded_outputs(exact: Exact, rounding: Rounding) -> list[torch.Tensor] | None:
    """The outputs in float64 with the products' operands rounded; None where there is no product, or none that runs in
    float64."""
    found, products = _rounded(exact, rounding)
    return found if products else None


def _rounded(exact: Exact, rounding: Rounding) -> tuple[list[torch.Tensor] | None, int]:
    mode = RoundedOperands(rounding)
    with _visible_products(), mode:
        found = exact()
    return found, mode.products
