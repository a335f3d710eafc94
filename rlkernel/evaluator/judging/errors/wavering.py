"""Whether roundings decide which whole numbers a reference gives, so that another order of the same arithmetic gives others.

Float64 tells it where float32 cannot tell numbers apart (`own_error.undecided`), and not where float32 just can: of
`argmax(tanh(x))` for an x of 8, whoever writes tanh as `2 * sigmoid(2 * x) - 1` has equal numbers where tanh has two neighbours.
So the reference is called again, with a few units in the last place less of whatever two right kernels may round otherwise, and
more of a long sum, which errs more the more terms it has. Equal
numbers get the same change: which of them is named is no question of rounding. None becomes as large as the largest, so that a
share stays below 1 and a place within its table; and a count stays what it is.

Where a number is held against one that is not rounded, as sums of shares against a level, it matters in which direction it moves.
So after the first calls, in which numbers lose, they gain in every second one.

It is asked twice: of a round before candidates are judged in it, and of a candidate that gives a few other numbers. At full shape
there may be one such number in any draw, which is right where another rounding gives it. So it is with real numbers that are made
of such ones (`jumping.py`). Source: ours, after Monte Carlo arithmetic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.errors.error_passes import BLOCK
from rlkernel.evaluator.judging.errors.own_error import undecided
from rlkernel.evaluator.judging.references.reference_calls import call, exact_outputs, tensors_of
from rlkernel.evaluator.program.codes import equal_or_wrong
from rlkernel.evaluator.program.operators import base_name, by_name

CALLS = 8
"""How often a reference is called: two neighbours change places in about every second one."""
MORE_CALLS = 40
"""How often it is called where few numbers are left that no call gave: each of five neighbours is the largest in every fifth."""
FEW = 1e-3
"""The share of an output that is few."""
BOTH_WAYS = CALLS + 4
"""After so many calls, two of which gain, it is asked how many are left."""
EXACT_CALLS = (0, 1, 2, CALLS + 1, CALLS + 3, CALLS + 5)
"""The turns in float64, in which numbers lose, and then gain."""
UNITS = 4.0
"""The most that a number loses or gains, in units in the last place of its dtype, unless it is a long sum."""
OF_A_SUM = 0.5
"""The same of a sum of n terms, in units of float32 and in roots of n: one term after the other, roundings of a half unit at most
add up to 0.3 roots of n in the mean, and a sum in another order errs so where this one does not."""
LONGEST = 1 << 14
"""The most terms that count so. A kernel takes a longer sum in parts, one beside the other, and of a mean of four million numbers
400 may not be left out."""
ADDED = frozenset({
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "convolution", "cumprod", "cumsum", "dot", "linear", "mm", "mv", "prod",
    "sum", "vdot",
})  # fmt: skip
"""Operators that only add and multiply: of whole numbers they give the exact one, in any order."""
ROUNDED = ADDED | {
    # functions
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "celu", "cos", "cosh", "digamma", "div", "elu", "erf", "erfc",
    "erfinv", "exp", "exp2", "expm1", "gelu", "glu", "lgamma", "log", "log10", "log1p", "log2", "log_sigmoid_forward",
    "logaddexp", "logaddexp2", "mish", "pow", "reciprocal", "rsqrt", "selu", "sigmoid", "silu", "sin", "sinc", "sinh",
    "softplus", "special_erfcx", "special_i0", "special_ndtr", "sqrt", "tan", "tanh", "xlogy",
    # sums along an axis
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_cdist_forward", "_fft_c2c", "_fft_c2r", "_fft_r2c", "_fused_rms_norm",
    "_log_softmax", "_native_batch_norm_legit", "_softmax", "avg_pool1d", "avg_pool2d", "avg_pool3d", "linalg_vector_norm",
    "logcumsumexp", "logsumexp", "mean", "native_batch_norm", "native_group_norm", "native_layer_norm", "norm", "std", "std_mean",
    "var", "var_mean",
    # products
    "_euclidean_dist",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_fused_attention_overrideable",
}  # fmt: skip
"""Operators whose last bits are nobody's mistake. A sum, a difference and a product of two numbers are exact everywhere, and so
is what only moves numbers or compares them."""
RUNNING = frozenset({"cumprod", "cumsum", "logcumsumexp"})
"""Operators whose results are sums, or products, of all that comes before along an axis."""
OF_ROWS = {"addmm": 1, "addmv": 1, "baddbmm": 1, "bmm": 0, "dot": 0, "linear": 0, "mm": 0, "mv": 0, "vdot": 0}
"""Operators that add up products along the last axis of one of their tensors, and which one it is."""
SUMS = frozenset({"linalg_vector_norm", "mean", "norm", "prod", "sum"})
"""Operators that add up the elements of a tensor, or multiply them, as many for each result."""
JUMPING = frozenset({
    "argmax", "argmin", "argsort", "bucketize", "ceil", "eq", "floor", "floor_divide", "fmod", "frac", "ge", "gt",
    "hardshrink", "heaviside", "histc", "le", "lt", "ne", "remainder", "round", "searchsorted", "sgn", "sign", "sort",
    "threshold", "topk", "trunc",
})  # fmt: skip
"""Operators that make quite another number of one that is a little larger, besides those that make whole numbers."""
WORDS = {torch.float64: torch.int64, torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}
ODD = 0x9E3779B97F4A7C15 - (1 << 64)
"""What spreads neighbouring bits over a word."""
STEPS = 1 << 10
EPS = torch.finfo(torch.float32).eps


class Wavering(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, what such operators give is a little smaller, or larger, in a way that `turn` names."""

    def __init__(self, turn: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._turn = turn
        self.jumps = False
        """Whether an operator was called that jumps."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name, kwargs = base_name(str(func)), dict(kwargs or {})
        name = "floor_divide" if kwargs.get("rounding_mode") else name
        given = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
        counts = name in ADDED and all(map(_whole, given))
        made = func(*args, **kwargs)
        self.jumps = self.jumps or _jumps(name, given, made)
        if name in ROUNDED and not (counts and _whole(made)):
            terms = _terms(name, by_name(func, args, kwargs), given, made)
            for tensor in made if isinstance(made, (tuple, list)) else (made,):
                if isinstance(tensor, torch.Tensor) and tensor.dtype in WORDS and tensor.numel():
                    parts = torch.split(tensor.view(-1), BLOCK) if tensor.is_contiguous() else (tensor,)
                    largest = max(map(_largest, parts)) if gains(self._turn) else None
                    for part in parts:
                        part.copy_(moved(part, self._turn, largest, terms))
        return made


def _terms(name: str, called: Mapping[str, Any], given: Sequence[torch.Tensor], made: Any) -> int:
    """How many terms each result of an operator is the sum of, where it only adds up; 1 of any other. given: the tensors among
    what it was `called` with."""
    if name in RUNNING:
        return given[0].shape[called["dim"]] if given[0].dim() else 1
    if name in OF_ROWS:
        return given[OF_ROWS[name]].shape[-1]
    if name == "addbmm":
        return given[1].shape[0] * given[1].shape[2]
    if name == "convolution":  # a transposed one has its inputs' channels where another has its outputs', of all groups
        outputs = given[1].shape[0] if not called["transposed"] else given[1].shape[1] * called["groups"]
        return given[1].numel() // max(1, outputs)
    return given[0].numel() // max(1, made.numel()) if name in SUMS else 1


def _jumps(name: str, given: Sequence[torch.Tensor], made: Any) -> bool:
    """Whether an operator jumps somewhere, which was given these tensors."""
    if not any(one.is_floating_point() for one in given):
        return False
    results = made if isinstance(made, (tuple, list)) else (made,)
    return name in JUMPING or any(isinstance(one, torch.Tensor) and equal_or_wrong(one.dtype) for one in results)


def wavers(turns: Iterable[Sequence[torch.Tensor]], outputs: Sequence[torch.Tensor]) -> float:
    """The share of whole numbers of the `outputs` that are others with other roundings, at the first of the `turns` in which some
    are (see `undecided`); 0 where there are none in `CALLS`, or the reference refuses."""
    if not any(equal_or_wrong(output.dtype) for output in outputs):
        return 0.0
    first = itertools.islice(turns, CALLS)
    return next((share for found in first if len(found) == len(outputs) and (share := undecided(outputs, found))), 0.0)


@dataclass(frozen=True, slots=True)
class OtherRoundings:
    """What one call of a reference gives with other roundings."""

    build: Callable[[], nn.Module]
    """The module as it was before the call."""
    inputs: Callable[[], list[Any]]
    """The arguments as they were before."""
    seed: int
    """What forward draws from."""
    within: Callable[[], AbstractContextManager[None]] = nullcontext
    """What bounds each call, because what ends where two numbers are equal may not end where roundings part them."""

    def turns(self) -> Iterator[Sequence[torch.Tensor]]:
        """The outputs with other roundings, again and again; none any more where the reference refuses them, or where it does not
        jump, so that they would be the same."""
        for turn in range(MORE_CALLS):
            wavering = Wavering(turn)
            found = self._called(wavering, lambda *made: tensors_of(call(*made)))
            if found is None:
                return
            yield found
            if not wavering.jumps:
                return

    def in_float64(self) -> Iterator[Sequence[torch.Tensor]]:
        """The outputs in float64, and then those with other roundings in float64, which show what depends on numbers that are
        equal without any rounding; fewer where the reference refuses them, and none where it does not run so."""
        for turn in (None, *EXACT_CALLS):
            found = self._called(None if turn is None else Wavering(turn), exact_outputs)
            if found is None:
                return
            yield found

    def _called(
        self, wavering: Wavering | None, how: Callable[[nn.Module, list[Any], int], Sequence[torch.Tensor] | None]
    ) -> Sequence[torch.Tensor] | None:  # fmt: skip
        """The outputs of one call; None where the reference refuses it."""
        try:
            with self.within():
                model, given = self.build(), self.inputs()
                with wavering or nullcontext():
                    return how(model, given, self.seed)
        except Exception:  # a reference may refuse such numbers in its own way, and a card may be full
            return None


def some_give(found: torch.Tensor, wanted: torch.Tensor, place: int, turns: Iterable[Sequence[torch.Tensor]]) -> bool:
    """Whether each whole number of an output that is not the `wanted` one is what the reference gives there in one of the
    `turns`, of which more than `BOTH_WAYS` are taken where few are left. place: of the output among all. Both have one shape and
    dtype."""
    right = found == wanted
    for number, turn in enumerate(turns):
        if place >= len(turn) or turn[place].shape != found.shape:
            return False
        right |= found == turn[place]
        left = right.numel() - int(right.sum())
        if not left or (number + 1 >= BOTH_WAYS and left > max(1, FEW * right.numel())):
            return not left
    return False


def _whole(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds whole numbers alone, and none so large that its dtype has not each of them."""
    if tensor.dtype not in WORDS:
        return equal_or_wrong(tensor.dtype)
    return bool(((tensor == tensor.round()) & (tensor.abs() * torch.finfo(tensor.dtype).eps <= 1.0)).all())


def gains(turn: int) -> bool:
    """Whether numbers become larger in this turn."""
    return turn >= CALLS and turn % 2 == 1


def _largest(tensor: torch.Tensor) -> float:
    """The largest size of a finite number."""
    size = tensor.abs()
    return float(size.where(size.isfinite(), 0.0).amax())


def moved(tensor: torch.Tensor, turn: int, largest: float | None = None, terms: int = 1) -> torch.Tensor:
    """Each number without up to `UNITS` units in the last place, by its own bits, or with as many more in a turn that `gains`.
    There one stays that would become as large as the `largest`. Infinities, zeros and NaN stay. `terms`: of how many each is the
    sum, see `OF_A_SUM`.

    >>> one = moved(torch.tensor([0.5, 3.0, 0.5, float("inf"), 0.0]), 1)
    >>> one[0] == one[2], one[3:], bool(((one[:3] / torch.tensor([0.5, 3.0, 0.5]) - 1).abs() <= 4.5 * 2**-23).all())
    (tensor(True), tensor([inf, 0.]), True)
    >>> bool((moved(torch.tensor([0.5, 3.0]), CALLS + 1, 3.0) >= torch.tensor([0.5, 3.0])).all())
    True
    """
    mixed = tensor.view(WORDS[tensor.dtype]).long() * ODD + turn
    for _ in range(2):  # the low bits of what was rounded before are zeros
        mixed = (mixed ^ (mixed >> 29)) * ODD
    share = ((mixed >> 32) % STEPS).to(torch.float64) * (1.0 / STEPS)
    eps = torch.finfo(tensor.dtype).eps
    of_a_sum = OF_A_SUM * math.sqrt(min(terms, LONGEST)) * min(eps, EPS)  # half precision is added up in float32
    change = share * max(UNITS * eps, of_a_sum)
    if largest is None:
        return (tensor.double() * (1.0 - change)).to(tensor.dtype)
    larger = (tensor.double() * (1.0 + change)).to(tensor.dtype)
    return larger.where(larger.abs() < largest, tensor)
