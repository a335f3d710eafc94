"""The benchmarks' honest candidates: enough, different, spread over the suite, reproducible; and one of every kind is correct."""

from __future__ import annotations

import ast
from collections import Counter

import anyio
import pytest

from benchmarks.corpus import Case, cases, corpus
from envs.problems import load_suite
from rlkernel.evaluator.pool import open_pool
from rlkernel.types import Evaluation
from tests.patient import PATIENT

SAMPLE = {
    "flat": "level2/chain_bias_tanh",
    "looped": "level1/row_max",
    "product": "level1/batched_matmul",
    "br=": "level1/transpose",
}
"""The beginning of a variant's name -> a problem that has such a variant and is judged quickly."""


def test_three_hundred_candidates_are_different_and_cover_a_hundred_problems() -> None:
    found = corpus(300)
    assert len({case.code for case in found}) == 300
    assert len({case.problem.name for case in found}) >= 100
    assert {case.problem.level for case in found} == {1, 2, 3}
    # Round robin: after 300 of more than 100 problems no problem has had more than three turns.
    assert max(Counter(case.problem.name for case in found).values()) <= 3


def test_every_candidate_of_the_corpus_is_another_file_with_the_reference_s_parameters() -> None:
    everything = [case for problem in load_suite() for case in cases(problem)]
    assert len({case.code for case in everything}) == len(everything) >= 640
    assert len({case.name for case in everything}) == len(everything)
    for case in everything[::7]:
        classes = [node.name for node in ast.parse(case.code).body if isinstance(node, ast.ClassDef)]
        assert classes == ["ModelNew"]
        attributes = {line.split("=")[0].strip() for line in case.problem.source.splitlines() if line.strip().startswith("self.")}
        assert all(f"{attribute} = " in case.code for attribute in attributes)


def test_the_corpus_is_a_function_of_the_seed_and_longer_ones_begin_with_shorter_ones() -> None:
    assert corpus(40, seed=3) == corpus(120, seed=3)[:40]
    assert corpus(40, seed=3) != corpus(40, seed=4)


def test_more_than_there_are() -> None:
    with pytest.raises(ValueError, match="the corpus holds"):
        corpus(1_000_000)


def test_a_sample_of_every_kind_is_correct() -> None:
    problems = {problem.name: problem for problem in load_suite()}
    sample = [
        next(case for case in cases(problems[name]) if case.name.removeprefix(f"{name} ").startswith(kind))
        for kind, name in SAMPLE.items()
    ]

    async def judge() -> dict[str, Evaluation]:
        found: dict[str, Evaluation] = {}
        async with open_pool(device="cpu", jobs=2, config=PATIENT) as pool, anyio.create_task_group() as tasks:

            async def one(case: Case) -> None:
                found[case.name] = await pool.evaluate(case.problem, case.code)

            for case in sample:
                tasks.start_soon(one, case)
        return found

    results = anyio.run(judge)
    assert {name: (str(r.status), r.detail) for name, r in results.items()} == {case.name: ("correct", "") for case in sample}
