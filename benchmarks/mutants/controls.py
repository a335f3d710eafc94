"""Whether an accepted mutant does what its original does: both are judged on other inputs, at longer sizes, and once more.

A control is the problem with another text. It tells something only where the original is correct there. A mutant that is refused
there differs. One that agrees everywhere does the same *as far as these controls tell*: they do not see what shows at the full
shape alone where there is no GPU, in weights of another kind, or within the bounds of the comparison. And a control may ask for
more than the problem does: a maximum that starts at -10 differs on inputs that the problem never draws.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator.pool import Pool
from rlkernel.reference_text import small_constants
from rlkernel.types import Problem

AGAIN = "again"
"""The control that draws inputs and weights once more, and changes nothing."""
DATA: Mapping[str, str] = {
    "tiny inputs": "x * 0.001",
    "large inputs": "x * 20",
    "shifted inputs": "x + 3",
    "negative inputs": "-x.abs() - 1",
    "far inputs": "x - 30",
}
"""Control -> what an input of floating point becomes there."""
LONGER: Mapping[str, int] = {"2 x sizes": 2}
"""Control -> by how much every size of SMALL grows, up to the full one. What divides a size divides it there, too."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one control says."""

    control: str
    agrees: bool | None
    """Whether the mutant is correct there, too; None where the original is not, so that the control tells nothing."""
    detail: str = ""
    """Why the mutant is refused there."""


def variations(problem: Problem, *, longer: bool) -> dict[str, Problem]:
    """The problem in other clothes, by the control's name. longer: with those of sizes, which a GPU does not look at."""
    found = {AGAIN: problem, **{name: with_inputs(problem, formula) for name, formula in DATA.items()}}
    if longer:
        for name, factor in LONGER.items():
            grown = with_sizes(problem, factor)
            if grown is not None and grown not in found.values():
                found[name] = grown
    return found


def with_inputs(problem: Problem, formula: str) -> Problem:
    """The problem with every input x of floating point replaced by a formula of x."""
    wrapped = (
        "\n\nimport torch as _torch\n\n_drawn = get_inputs\n\n\ndef get_inputs():\n"
        f"    return [{formula} if isinstance(x, _torch.Tensor) and x.is_floating_point() else x for x in _drawn()]\n"
    )
    return replace(problem, source=problem.source + wrapped)


def with_sizes(problem: Problem, factor: int) -> Problem | None:
    """The problem with a SMALL whose sizes are `factor` times as large, but not above the full ones; None without SMALL."""
    sizes = small_constants(problem.source)
    if not sizes:
        return None
    grown = {name: min(factor * small, max(full, small)) for name, (full, small) in sizes.items()}
    tree = ast.parse(problem.source)
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "SMALL":
            statement.value = ast.parse(repr(grown), mode="eval").body
    return replace(problem, source=ast.unparse(tree) + "\n")


async def told(pool: Pool, problem: Problem, original: str, mutant: str) -> list[Told]:
    """What every control says of an accepted mutant. The first one that tells a difference is the last that is asked."""
    found: list[Told] = []
    for name, other in variations(problem, longer=not pool.runners).items():
        suffix = f"\n# {AGAIN}\n" if name == AGAIN else ""  # another text, so that the verdict is not the remembered one
        try:
            if not (await pool.evaluate(other, original + suffix)).correct:
                found.append(Told(name, None))
                continue
            verdict = await pool.evaluate(other, mutant + suffix)
        except (BrokenReference, EvaluatorFailed) as error:
            found.append(Told(name, None, str(error)))
            continue
        found.append(Told(name, verdict.correct, "" if verdict.correct else f"{verdict.status}: {verdict.detail}"))
        if not verdict.correct:
            break
    return found
