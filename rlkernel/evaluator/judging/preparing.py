"""A problem made ready to be judged: its reference traced at both sizes, with its costs, and kept to draw rounds from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.forward_costs import Costs
from rlkernel.evaluator.judging.costs.least_work import ALL, LEAST, Matters, has_one_product, leaves_rows, may_hide
from rlkernel.evaluator.judging.costs.roofline import TRIANGLE
from rlkernel.evaluator.judging.inputs.crowded import crowded_of, may_crowd
from rlkernel.evaluator.judging.inputs.enlarged import enlarged_of
from rlkernel.evaluator.judging.inputs.equals import may_repeat, repeats_of
from rlkernel.evaluator.judging.inputs.kept import kept_of, may_forget
from rlkernel.evaluator.judging.inputs.labels import labels_of, may_label
from rlkernel.evaluator.judging.inputs.little import resized_of
from rlkernel.evaluator.judging.inputs.one_sided import one_sided_of
from rlkernel.evaluator.judging.inputs.pressed import may_name, pressed_of
from rlkernel.evaluator.judging.inputs.told import told_shares
from rlkernel.evaluator.judging.inputs.unshown import may_hide as may_hide_effects
from rlkernel.evaluator.judging.inputs.unshown import plants_of
from rlkernel.evaluator.judging.references.at_full_shape import traced_at_full_shape
from rlkernel.evaluator.judging.references.ending import FEWEST_AT_OTHER_SIZES, Endless, Usual
from rlkernel.evaluator.judging.references.reference_calls import call, tensors_of
from rlkernel.evaluator.judging.references.traced_reference import TracedReference
from rlkernel.evaluator.judging.sizes.counterparts import Shape, counterparts
from rlkernel.evaluator.judging.sizes.counting import counts_elements
from rlkernel.evaluator.judging.sizes.distances import cuts, hides_distances, tells_places
from rlkernel.evaluator.judging.sizes.widths import adds_whole_numbers, hides_widths, larger_in
from rlkernel.evaluator.judging.zeros.full_share import OF_INPUTS, Studied, full_share, makes_zeros, multiplies
from rlkernel.evaluator.messages.judgement import NOTHING, KnownInput, Planting, Told
from rlkernel.evaluator.program.replaced import drawn
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.variant import Variant
from rlkernel.evaluator.trace.recorder import Untraceable
from rlkernel.reference import Reference, describe, load_reference
from rlkernel.reference_text import apply_small, small_constants, without_small
from rlkernel.types import Precision

MOST_LOOKED_AT = 1 << 24
"""Elements of inputs and weights up to which their values are looked at; with more, a part of them may hide another."""
MOST_DRAWN = 1 << 22
"""Elements of inputs and weights up to which they are drawn at full shape, to see how large their whole numbers are, and up to
which a forward that does what values say is called to see what it returns."""


SHAPES_DRAWN = 3
"""How often a forward that does what values say is called to see whether its outputs have other shapes."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A problem, ready: its references at both sizes, and what the tracer and the roofline need."""

    small: Reference
    variants: tuple[Variant, Variant]
    """The arguments at small and at full shape."""
    modal: bool
    """Whether forward differs between train and eval mode, and the constructor leaves the module in the usual one, train mode."""
    costs: Costs
    program: Program
    """The reference itself, traced at full shape."""
    counterparts: dict[int, tuple[int, ...]]
    """What stands at the small shape for numbers of the full one."""
    counts: bool = False
    """Whether its values depend on how many elements there are, see `sizes.counting`."""
    distances: bool = False
    """Whether it tells places apart at full shape and not at the small one, see `sizes.distances`."""
    widths: bool = False
    """Whether it adds up whole numbers that need more bits at full shape than at the small one, see `sizes.widths`."""
    plants: tuple[Planting, ...] = ()
    """What is done to its inputs, each in a round, to show what it does and no draw shows."""
    known: tuple[KnownInput, ...] = ()
    """The whole numbers that forward is given at full shape, see `costs.known`."""
    told: Told | None = None
    """What kernels take at least that loop as far as these say."""


def prepare(source: str, name: str, profile: DeviceProfile, precision: Precision, *, modelled: bool = True) -> Prepared:
    """A problem traced at both of its sizes. modelled: whether times are; where they are measured, nobody asks for the floors of
    modelled ones, nor for what is done to inputs without a GPU. Raises BrokenReference, one line that names the problem."""
    small, full = load_reference(source, small=True, name=name), load_reference(source, small=False, name=name)
    try:
        traced_small = TracedReference(small, profile)
        if traced_small.asks_values and traced_small.given <= MOST_DRAWN:
            _returns_one_shape(small)
        replaced = traced_small.replaced
        if traced_small.keeps:
            replaced = tuple(dict.fromkeys((*replaced, *drawn(small.model(0), small.model(1)))))
        if replaced:
            traced_small = TracedReference(small, profile, replaced)
        one_size = apply_small(source, name=name) == source
        traced_full = traced_small if one_size else traced_at_full_shape(source, full, profile, replaced)
        matters = _matters(source, name, profile, small, (traced_small.program, traced_full.program)) if modelled else ALL
        costs, told = traced_full.costs(precision, matters), None
        known: tuple[KnownInput, ...] = ()
        plants = _plants(small, source, traced_small) if modelled else ()
        if modelled:
            costs = _asked_for(costs, small, traced_small, traced_full, matters)
            known = traced_full.known()
        if known and traced_small.given <= MOST_LOOKED_AT:
            told = _told(small, traced_full, costs, precision, matters)
        widths = modelled and not one_size and _hides_widths((small, full), traced_small, traced_full)
    except Untraceable as error:
        raise BrokenReference(f"{name}: the reference cannot be traced: {error}") from error
    except BrokenReference:
        raise
    except Exception as error:  # any failure of the reference's own code becomes one line about it
        raise BrokenReference(f"{name}: tracing forward raised {describe(error, name)}") from error
    if costs.us <= 0:
        raise BrokenReference(f"{name}: forward does no device work, so there is nothing to speed up")
    constants = small_constants(source, name=name)
    shrunk = replace(traced_small.variant, constants=constants, replaced=replaced)
    variants = (shrunk, replace(traced_full.variant, replaced=replaced))
    numbers = {} if one_size else counterparts(constants, _alike(traced_full, traced_small))
    counts = not one_size and counts_elements(traced_small.program, traced_full.program)
    shapes = traced_small.shapes, traced_full.shapes
    distances = not one_size and hides_distances(traced_small.program, traced_full.program, *shapes)
    return Prepared(
        small, variants, traced_small.modal, costs, traced_full.program, numbers, counts, distances, widths, plants, known, told
    )  # fmt: skip


def _returns_one_shape(reference: Reference) -> None:
    """Raises BrokenReference where forward returns tensors of other shapes with other values of its inputs."""
    with torch.no_grad():
        outputs = [tensors_of(call(reference.model(seed), reference.inputs(seed), seed)) for seed in range(SHAPES_DRAWN)]
    shapes = {tuple(tuple(tensor.shape) for tensor in found) for found in outputs}
    if len(shapes) > 1:
        one, other = (", ".join(map(str, found)) for found in sorted(shapes)[:2])
        raise BrokenReference(
            f"{reference.name}: forward returns shapes that depend on values, {one} and {other}; return tensors whose shapes "
            "follow from those of the inputs"
        )


def _hides_widths(
    references: tuple[Reference, Reference], traced_small: TracedReference, traced_full: TracedReference
) -> bool:  # fmt: skip
    """Whether the small shape is too small to show how wide its sums of whole numbers are."""
    programs, (small, full) = (traced_small.program, traced_full.program), references
    if traced_small.given > MOST_LOOKED_AT or not adds_whole_numbers(programs[0], _given(small, 0)):
        return False
    try:
        with Usual(FEWEST_AT_OTHER_SIZES).bounded():
            drawn = tensors_of(full.inputs(0)) if traced_full.given <= MOST_DRAWN else ()
            larger = larger_in(drawn, tensors_of(small.inputs(0)))
            return hides_widths(small, *programs, (traced_small.shapes, traced_full.shapes), larger)
    except Endless:
        return False


def _asked_for(
    costs: Costs, small: Reference, traced_small: TracedReference, traced_full: TracedReference, matters: Matters
) -> Costs:  # fmt: skip
    """What is asked for at least, by the values of what a forward is given."""
    little = traced_small.given <= MOST_LOOKED_AT
    if not little or may_hide(_given(small, 0, buffers=False), _given(small, 1, buffers=False)):
        costs = replace(costs, reads=NOTHING)
    elif all(costs.reads.inputs) and not makes_zeros(traced_full.program) and not tells_places(traced_full.program):
        costs = replace(costs, reads=replace(costs.reads, made=True))
    return replace(costs, least_share=_least_share(costs, small, traced_small)) if matters is ALL else costs


def _told(
    small: Reference, full: TracedReference, costs: Costs, precision: Precision, matters: Matters
) -> Told | None:  # fmt: skip
    """What kernels take at least that loop as far as whole numbers say; None where that is what any takes. Of an attention both
    sides of a product may be as long as a length."""
    shares = told_shares(small)
    if shares is None:
        return None
    parts = matters.inputs or (1.0,) * len(shares)
    inputs = tuple(one * other for one, other in zip(parts, shares, strict=True))
    part = min(shares) ** 2 if makes_zeros(full.program) else 1.0  # rows that nobody gathers are in no product
    least = full.costs(precision, Matters(matters.steps, inputs), part)
    return Told(least.floor_us, min(least.least_share, costs.least_share))


def _plants(small: Reference, source: str, traced: TracedReference) -> tuple[Planting, ...]:
    """What shows effects that no draw does: of operators, of equal numbers, of neighbours, of labels, of inputs that
    hardly matter, of roundings, of larger whole numbers, of choices, and of gates."""
    found: list[Planting] = []
    if may_hide_effects(traced.program, source):
        found += _if_it_ends(lambda: plants_of(small, source))
    if may_repeat(traced.program):
        found += _if_it_ends(lambda: repeats_of(small))
    if may_name(traced.program):
        found += _if_it_ends(lambda: pressed_of(small))
    if may_label(traced.program):
        found += _if_it_ends(lambda: labels_of(small))
    if traced.given <= MOST_LOOKED_AT:
        found += _if_it_ends(lambda: resized_of(small))
        found += _if_it_ends(lambda: one_sided_of(small))
        found += _if_it_ends(lambda: enlarged_of(small))
        if may_crowd(traced.program):
            found += _if_it_ends(lambda: crowded_of(small))
        if may_forget(traced.program) or tells_places(traced.program):
            found += _if_it_ends(lambda: kept_of(small))
    return tuple(found)


def _if_it_ends(look: Callable[[], Sequence[Planting]]) -> Sequence[Planting]:
    """What was found; nothing where the reference does not end with inputs that nobody draws."""
    try:
        with Usual(FEWEST_AT_OTHER_SIZES).bounded():
            return look()
    except Endless:
        return ()
    except BrokenReference as error:
        if not isinstance(error.__cause__, Endless):  # what ended get_inputs
            raise
        return ()


def _alike(full: TracedReference, small: TracedReference) -> list[tuple[Shape, Shape]]:
    """The shapes of the same tensors at both sizes; none where a reference makes other ones. Without those that have a length
    which values decide: who writes a number of the full shape does not mean the tokens of an expert, which may be as many."""
    pairs = [*zip(full.shapes, small.shapes, strict=False)]
    if len(full.shapes) != len(small.shapes) or any(len(one) != len(other) for one, other in pairs):
        return []
    given = (*full.program.inputs, *full.program.state.values())
    sizes = {axis for number in given for axis in zip(*pairs[number], strict=True)}
    told = {*zip(full.told, small.told, strict=False)} - sizes
    return [pair for pair in pairs if told.isdisjoint(zip(*pair, strict=True))]


def _least_share(costs: Costs, small: Reference, traced: TracedReference) -> float:
    """The share of its products' operations that a problem asks for, by what it does and by the values of what it is given."""
    alone = has_one_product(traced.program)
    if traced.given > MOST_LOOKED_AT or not (alone or costs.least_share > LEAST):
        return LEAST  # which no value changes
    one, other = _given(small, 0), _given(small, 1)
    if alone and leaves_rows(one, other):
        return 0.0
    return LEAST if may_hide(one, other) else costs.least_share


def _matters(
    source: str, name: str, profile: DeviceProfile, small: Reference, programs: tuple[Program, Program]
) -> Matters:  # fmt: skip
    """What structural zeros leave of a reference's products at full shape, and of its inputs; all where it has none, or too few
    to matter. Where it has no products, only places and slices are taken to hide a part of an input.
    `programs`: at small and at full shape, whose steps must be the same."""
    alike, other = ([step.op for step in program.forward if isinstance(step, Op)] for program in programs)
    products = multiplies(programs[0])
    hides = makes_zeros(programs[0]) and (tells_places(programs[0]) or cuts(programs[0]))
    if alike != other or not (products or hides):
        return ALL
    if not makes_zeros(programs[0]) and not may_hide(tensors_of(small.inputs(0)), tensors_of(small.inputs(1))):
        return ALL
    with Usual(FEWEST_AT_OTHER_SIZES).bounded():
        found = full_share(Studied(name, without_small(source), profile, source, TRIANGLE if products else OF_INPUTS))
    return found if found is not None and (found.steps or not products) else ALL


def _given(reference: Reference, seed: int, *, buffers: bool = True) -> list[torch.Tensor]:
    """The tensors that a forward is given: inputs, parameters and buffers, as the reference's author draws them."""
    model = reference.model(seed)
    return [*tensors_of(reference.inputs(seed)), *model.parameters(), *(model.buffers() if buffers else ())]
