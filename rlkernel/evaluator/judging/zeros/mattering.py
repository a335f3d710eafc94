"""How much of a reference's products matters, counted at one size.

A term of a product matters if none of its factors is a structural zero, and if its sum reaches the result. Example: of
`tril(tril(a) @ tril(b))`, n (n + 1) (n + 2) / 6 of n^3 terms. A structural zero is zero in each of several drawings, with other
weights and inputs, as rounds have them; a sum does not reach the result if its gradient is zero in each of them. Both are found
by running the reference, never by looking at a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import torch

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.operations import flops
from rlkernel.evaluator.judging.inputs.fixed import fixed_masks
from rlkernel.evaluator.judging.inputs.stress import is_mask, stressed, stresses
from rlkernel.evaluator.judging.references.reference_calls import constants, perturb, tensors_of
from rlkernel.evaluator.judging.references.traced_reference import TracedReference
from rlkernel.evaluator.messages.judgement import Places, Stress
from rlkernel.evaluator.program.operators import argument, base_name, operator
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Op, Step
from rlkernel.reference import Reference

DRAWINGS = 2
"""How many drawings there are at least; twice as many each time that the last ones have found less to be zero."""
MOST_DRAWINGS = 16
PRODUCTS = {"mm", "addmm", "bmm", "baddbmm"}
ATTENTION = "scaled_dot_product_attention"
_SHAPES = {"empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "new_ones", "new_full"}
"""Operators that read shapes alone."""
_STEPS = {"round", "floor", "ceil", "trunc", "fix", "sign", "sgn", "heaviside", "floor_divide", "fmod", "remainder", "frac"}
"""Operators whose gradient says nothing of what they need, as it is zero, or that of another function."""


class Unknown(Exception):
    """Gradients do not say what of this reference matters."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one step's products."""

    matter: int
    """Those that matter."""
    sums: int
    """The sums that have one which matters."""
    all: int
    all_sums: int

    @property
    def exact(self) -> Fraction:
        """Of all terms, those that matter."""
        return Fraction(self.matter, max(1, self.all))

    def __add__(self, other: Terms) -> Terms:
        sums, every = self.sums + other.sums, self.all_sums + other.all_sums
        return Terms(self.matter + other.matter, sums, self.all + other.all, every)


@dataclass(frozen=True, slots=True)
class Count:
    """What matters at one size."""

    products: dict[int, Terms]
    """Step of forward -> its terms. Those of other steps matter."""
    inputs: tuple[int, ...]
    """Elements of each tensor among the inputs that matter: those that are no structural zeros, and that have a gradient."""
    all_inputs: tuple[int, ...]

    @property
    def exact(self) -> dict[int, Fraction]:
        """Step of forward -> of all its terms, those that matter. Where there are no products: each input, by a number below
        zero -> of all its elements, those that matter."""
        if self.products:
            return {step: terms.exact for step, terms in self.products.items()}
        pairs = zip(self.inputs, self.all_inputs, strict=True)
        return {-1 - place: Fraction(part, max(1, whole)) for place, (part, whole) in enumerate(pairs)}

    @property
    def least(self) -> float:
        """The least of these."""
        return float(min(self.exact.values(), default=1.0))


@dataclass(slots=True)
class _Product:
    """One product of a forward: which elements were not zero in some drawing."""

    multiply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    factors: list[torch.Tensor]
    reaches: torch.Tensor
    operations: float

    def reached(self, gradient: torch.Tensor) -> None:
        """Note which of the product's elements have a gradient in a drawing."""
        self.reaches |= gradient != 0

    def terms(self) -> Terms:
        left, right = (factor.float() for factor in self.factors)
        found = self.multiply(left, right) * self.reaches
        return Terms(int(found.sum(dtype=torch.float64)), int((found > 0.5).sum()), int(self.operations) // 2, found.numel())


@dataclass(slots=True)
class _Seen:
    """What the drawings so far have shown."""

    products: dict[tuple[int, int], _Product] = field(default_factory=dict)
    inputs: list[torch.Tensor] = field(default_factory=list)

    def product(
        self, key: tuple[int, int], multiply: Callable[[Any, Any], torch.Tensor], factors: Sequence[torch.Tensor],
        made: torch.Tensor, operations: float,
    ) -> None:  # fmt: skip
        """Note a product of a drawing, and, once it is known, which of its elements reach the result."""
        left_over = [factor.detach() != 0 for factor in factors]
        product = self.products.get(key)
        if product is None:
            product = _Product(multiply, left_over, torch.zeros(made.shape, dtype=torch.bool), operations)
            self.products[key] = product
        else:
            product.factors = [known | now for known, now in zip(product.factors, left_over, strict=True)]
        if made.requires_grad:
            made.register_hook(product.reached)  # type: ignore[no-untyped-call]
        else:
            product.reaches.fill_(True)

    def count(self) -> Count:
        found: dict[int, Terms] = {}
        for (step, _), product in self.products.items():
            found[step] = found.get(step, Terms(0, 0, 0, 0)) + product.terms()
        return Count(found, tuple(int(one.sum()) for one in self.inputs), tuple(one.numel() for one in self.inputs))


class _Following(Replay):
    """Runs a reference's forward so that gradients say what of it matters, and notes its products."""

    seen: _Seen

    def _operator(self, index: int, step: Op, observe: Any) -> None:
        if base_name(step.op) == ATTENTION and index >= 0:
            self._attention(index, step)
        else:
            super()._operator(index, step, observe)

    def _attention(self, index: int, step: Op) -> None:
        """An attention as its two products, of which a mask hides a part."""
        query, key, value = (self._value(argument(step, name)) for name in ("query", "key", "value"))
        mask, scale = self._value(argument(step, "attn_mask")), argument(step, "scale")
        if argument(step, "dropout_p", 0.0) or argument(step, "enable_gqa", False):
            raise Unknown
        keys = key.transpose(-1, -2)
        scores = torch.matmul(query, keys)
        half = 2.0 * scores.numel()
        self.seen.product((index, 0), torch.matmul, (query, keys), scores, half * query.shape[-1])
        scores = scores * (query.shape[-1] ** -0.5 if scale is None else scale)
        if argument(step, "is_causal", False):
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype is torch.bool else scores + mask
        weights = torch.softmax(scores, dim=-1)
        made = torch.matmul(weights, value)
        self.seen.product((index, 1), torch.matmul, (weights, value), made, half * value.shape[-1])
        assert step.outs[0] is not None
        self.values[step.outs[0]] = made

    def see(self, index: int, step: Step, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> None:
        """Note one step. Raises Unknown for one that hides from gradients what it needs."""
        if not isinstance(step, Op):
            return
        name = base_name(step.op)
        if any(t.requires_grad for t in read) and name not in _SHAPES:
            rounds = name in _STEPS or argument(step, "rounding_mode") is not None
            if rounds or any(t.is_complex() or not t.requires_grad for t in self._used(index, step)):
                raise Unknown
        work = flops(step, read, made)
        if name in PRODUCTS:
            self.seen.product((index, 0), torch.matmul, read[-2:], made[0], work)
        elif name == "convolution":
            rest = [argument(step, a.name) for a in operator(step.op)._schema.arguments[3:]]
            self.seen.product((index, 0), lambda x, w: torch.ops.aten.convolution(x, w, None, *rest), read[:2], made[0], work)

    def _used(self, index: int, step: Op) -> list[torch.Tensor]:
        """What a step has made, as far as anybody reads it: of a layer norm the result, and no mean."""
        last = self._last_uses[index]
        return [self.values[number] for number in step.outs if number in self.values and number not in last]


def count(reference: Reference, profile: DeviceProfile, enough: float) -> Count:
    """What matters of a reference's products at its own sizes. Drawings are added until they find nothing more, or until the
    share of terms that matter is `enough` in each product. Raises Unknown, and whatever the reference raises."""
    traced = TracedReference(reference, profile)
    if traced.replaced or traced.keeps or traced.program.carried or traced.program.prepare:
        raise Unknown  # a module that a call changes, or whose host reads numbers
    seen, last, done = _Seen(), None, 0
    wanted = DRAWINGS
    while wanted <= MOST_DRAWINGS:
        for seed in range(done, wanted):
            _draw(reference, traced, seed, seen)
        found, done, wanted = seen.count(), wanted, 2 * wanted
        if found == last or found.least >= enough:  # which further drawings only raise
            return found
        last = found
    raise Unknown


def _draw(reference: Reference, traced: TracedReference, seed: int, seen: _Seen) -> None:
    """One drawing: as the problem is written, or every other time at other weights and inputs, as rounds have them."""
    model, inputs = reference.model(seed), reference.inputs(seed)
    if seed % 2:
        perturb(model, seed, constants(model, reference.fixed))
        masks = tuple(place for place, tensor in enumerate(tensors_of(inputs)) if is_mask(tensor))
        same = fixed_masks(tensors_of(inputs), tensors_of(reference.inputs(seed + 1)))
        inputs = stressed(inputs, next(iter(stresses(inputs)), Stress.VARIED), Places(holed=masks, turned=same))
    program = traced.program
    following = _Following(program, torch.device("cpu"), lambda *call: None)
    following.seen = seen
    with torch.enable_grad():
        following.init(tensors_of(reference.init_inputs(seed)), seed)
        trained = dict(model.named_parameters())
        state = {**trained, **dict(model.named_buffers())}
        leaves = [_leaf(tensor) for tensor in tensors_of(inputs)]
        weights = {number: _leaf(state[name], name in trained).clone() for name, number in program.state.items()}
        following.values.update(weights)
        given = [leaf.clone() for leaf in leaves]  # a leaf may not be written into
        following.prepare((), seed)
        returned = tensors_of(following.forward(given, seed, observe=following.see))
        if any(tensor._version for tensor in [*given, *weights.values()]):
            raise Unknown  # what is written into an argument is a result, too
        outputs = [output for output in returned if output.requires_grad]
        if len(outputs) < len(returned):
            raise Unknown
        generator = torch.Generator().manual_seed(seed)
        drawn = [torch.randn(output.shape, generator=generator).to(output.dtype) for output in outputs]
        torch.autograd.backward(outputs, drawn)
    matter = [_matters(leaf) for leaf in leaves]
    seen.inputs = [known | now for known, now in zip(seen.inputs or matter, matter, strict=True)]


def _leaf(tensor: torch.Tensor, varies: bool = True) -> torch.Tensor:
    """A copy that gradients are taken of, where it holds floating-point numbers and is no buffer: a mask may be compared."""
    return tensor.detach().clone().requires_grad_(varies and tensor.is_floating_point())


def _matters(leaf: torch.Tensor) -> torch.Tensor:
    """Which elements of an input matter in a drawing: all of one that has no gradients, as a mask has none."""
    if not leaf.requires_grad:
        return torch.ones(leaf.shape, dtype=torch.bool)
    return torch.zeros(leaf.shape, dtype=torch.bool) if leaf.grad is None else (leaf.detach() != 0) & (leaf.grad != 0)
