"""Mistakes that language models really make in Triton, as changes of a right draft.

Whether a draft is in fact wrong is for the evaluator to say: two operations that commute may be swapped without harm.
"""

from __future__ import annotations

import random
from dataclasses import replace

from envs.chains import Step
from envs.teacher.drafts import Draft, Edit, Use, code

MISSPELT: tuple[Edit, ...] = (
    Edit("2.0 * tl.sigmoid(2.0 * x) - 1.0", "tl.tanh(x)"),
    Edit("0.5 * x * (1.0 + tl.erf(x * 0.70710678))", "tl.gelu(x)"),
    Edit("x * tl.sigmoid(x)", "tl.silu(x)"),
    Edit("tl.maximum(x, 0.0)\n", "tl.relu(x)\n"),
    Edit("tl.where(x > 0, x,", "tl.leaky_relu(x > 0, x,"),
    Edit("tl.abs(x)\n", "tl.fabs(x)\n"),
    Edit("tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))", "tl.softplus(x)"),
    Edit("tl.sigmoid(x)", "torch.sigmoid(x)"),
    Edit("BLOCK: tl.constexpr", "BLOCK"),
    Edit("tl.program_id(0)", "tl.programid(0)"),
    Edit("tl.arange(0, BLOCK)", "tl.range(0, BLOCK)"),
    Edit("tl.store(y_ptr + i, x, mask=m)", "tl.store(y_ptr + i, x, mask=m"),
    Edit("tl.load(x_ptr + i, mask=m)", "tl.load(x_ptr + i mask=m)"),
)
"""Functions that do not exist, forgotten `constexpr`, syntax slips."""

MISCOMPUTED: tuple[Edit, ...] = (
    Edit("0.5 * x * (1.0 + tl.erf(x * 0.70710678))", "x * tl.sigmoid(1.702 * x)"),
    Edit("0.5 * x * (1.0 + tl.erf(x * 0.70710678))", "x * (1.0 + tl.erf(x * 0.70710678))"),
    Edit("2.0 * tl.sigmoid(2.0 * x) - 1.0", "2.0 * tl.sigmoid(x) - 1.0"),
    Edit("x * tl.sigmoid(x)", "tl.sigmoid(x)"),
    Edit("x = tl.sigmoid(x)", "x = x * tl.sigmoid(x)"),
    Edit("tl.where(x > 0, x,", "tl.where(x < 0, x,"),
    Edit("tl.exp(-tl.abs(x))", "tl.exp(tl.abs(x))"),
    Edit("tl.maximum(x, 0.0)\n", "tl.minimum(x, 0.0)\n"),
    Edit("tl.minimum(tl.maximum(x,", "tl.maximum(tl.minimum(x,"),
)
"""Formulas that compile and are not the operation."""


def uncompilable(draft: Draft, rng: random.Random) -> Draft:
    """A name that Triton does not have, or a syntax slip."""
    return replace(draft, edit=rng.choice(_applicable(draft, MISSPELT)))


def wrong(draft: Draft, rng: random.Random) -> Draft:
    """A wrong formula, a wrong constant, an operation left out, or two operations swapped."""
    choices = [replace(draft, edit=edit) for edit in _applicable(draft, MISCOMPUTED)]
    choices += [replace(draft, steps=steps) for steps in (_other_constant(draft, rng), _swapped(draft, rng)) if steps]
    if draft.use is Use.LIVE and len(draft.steps) > 1 and draft.fused:
        skipped = rng.randrange(len(draft.steps))
        steps = draft.steps[:skipped] + draft.steps[skipped + 1 :]
        choices.append(replace(draft, steps=steps, last=len(steps)))
    return rng.choice(choices) if choices else uncompilable(draft, rng)


def _applicable(draft: Draft, edits: tuple[Edit, ...]) -> list[Edit]:
    kernel = code(replace(draft, edit=None)).partition("class ModelNew")[0]
    return [edit for edit in edits if edit.old in kernel]


def _other_constant(draft: Draft, rng: random.Random) -> tuple[Step, ...] | None:
    places = [k for k, step in enumerate(draft.steps) if step.constants]
    if not places:
        return None
    k = rng.choice(places)
    step = draft.steps[k]
    others = [constants for constants in step.op.constants if constants != step.constants]
    return (*draft.steps[:k], replace(step, constants=rng.choice(others)), *draft.steps[k + 1 :])


def _swapped(draft: Draft, rng: random.Random) -> tuple[Step, ...] | None:
    if len(draft.steps) < 2:
        return None
    k = rng.randrange(len(draft.steps) - 1)
    return (*draft.steps[:k], draft.steps[k + 1], draft.steps[k], *draft.steps[k + 2 :])
