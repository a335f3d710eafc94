"""Distinct honest candidates over the whole suite: what the benchmarks feed the evaluator with.

Each is a plan (`elementwise`, `rowwise`, `tiled`) in one size and design, so that every candidate is another text and another
binary. None is tuned: they are the kernels that a model would write on a good day.
"""

from __future__ import annotations

import functools
import itertools
import random
from dataclasses import dataclass

from benchmarks.corpus import elementwise, rowwise, tiled
from benchmarks.corpus.plans import Plan
from envs.problems import load_suite
from rlkernel.types import Problem


@dataclass(frozen=True, slots=True)
class Case:
    """One honest candidate."""

    problem: Problem
    name: str
    """Problem and variant, e.g. `level1/softmax registers warps=4`."""
    code: str


def plans(problem: Problem) -> tuple[Plan, ...]:
    """How the corpus solves a problem of the suite; empty if it does not."""
    chain = elementwise.chain_plan(problem)
    if chain is not None:
        return (chain,)
    return tuple(plan for table in (tiled.PLANS, rowwise.PLANS, elementwise.PLANS) for plan in table.get(problem.name, ()))


@functools.cache
def cases(problem: Problem) -> tuple[Case, ...]:
    """Every candidate for a problem, one of each plan in turn."""
    found = [
        [
            Case(problem, f"{problem.name} {what}{f' plan={number}' if number else ''}", code)
            for what, code in plan.variants(problem)
        ]
        for number, plan in enumerate(plans(problem))
    ]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*found))
    return tuple({case.code: case for case in turns if case is not None}.values())


def corpus(count: int, seed: int = 0) -> tuple[Case, ...]:
    """`count` different candidates, a function of `seed` alone: a random order of the problems, one candidate of each per round.

    Raises ValueError if there are fewer.
    """
    rng = random.Random(seed)
    shuffled = [rng.sample(cases(problem), len(cases(problem))) for problem in load_suite()]
    rng.shuffle(shuffled)
    order = [case for turn in itertools.zip_longest(*shuffled) for case in turn if case is not None]
    if count > len(order):
        raise ValueError(f"the corpus holds {len(order)} candidates, {count} were asked for")
    return tuple(order[:count])
