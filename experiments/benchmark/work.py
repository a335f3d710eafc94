"""A benchmark's work: it opens who writes and who judges, and makes all trajectories that the ledger lacks."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any

from experiments.benchmark.plan import Plan
from rlkernel.benchmark.audit import audit
from rlkernel.benchmark.trajectories import Ledger, Missing, Task, TurnRow, evaluate_codes, make_trajectories
from rlkernel.errors import EvaluatorFailed
from rlkernel.evaluator.messages.native import Way
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.ray.pool import RayPool
from rlkernel.policy.writer import PolicyWriter, Writer
from rlkernel.training.placement import open_any_pool, place


async def work(plan: Plan, ledger: Ledger, key: str, on_row: Callable[[TurnRow], None]) -> Missing:
    """Do everything that the ledger lacks. An evaluator that fails on a problem is replaced, and the problem is left out."""
    loaded: list[Any] = []
    while True:
        failed = False
        try:
            async with _opened(plan, ledger, key, loaded) as (pool, writer):
                if writer is None:
                    assert plan.solutions is not None
                    codes: dict[str, Sequence[str | None]] = {n: found or [None] for n, found in plan.solutions.items()}
                    await evaluate_codes(plan.problems, codes, pool, ledger, plan.reward, on_row=on_row)
                    missing = Missing()
                else:
                    task = Task(writer, pool, plan.environment, plan.reward, plan.context, plan.turns, plan.flags.seed)
                    missing = await make_trajectories(plan.problems, plan.flags.samples, task, ledger, on_row=on_row)
                if plan.flags.audit:
                    await _audit(plan, ledger, pool)
                return missing
        except* EvaluatorFailed as group:
            failed = True
            print(f"left out: {_leaf(group)}", file=sys.stderr, flush=True)
        assert failed


async def _audit(plan: Plan, ledger: Ledger, pool: Pool | RayPool) -> None:
    assert isinstance(pool, Pool)
    problems = {problem.name: problem for problem in plan.problems}
    run = partial(pool.run_natively, way=Way.KERNELBENCH)
    await audit(plan.directory, ledger, problems, run, plan.flags.audit, plan.flags.seed)


def _leaf(error: BaseException) -> BaseException:
    return _leaf(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


@asynccontextmanager
async def _opened(plan: Plan, ledger: Ledger, key: str, loaded: list[Any]) -> AsyncIterator[tuple[Pool | RayPool, Writer | None]]:
    """Open the evaluator and who writes, which is nobody for solutions. loaded: the model and tokenizer, read once."""
    flags, cache = plan.flags, plan.flags.out / "evaluations"
    own = flags.model and not flags.url
    placement = place(flags.device) if own else None
    device = flags.device if placement is None else placement.device
    opening = open_any_pool(device=device, jobs=flags.jobs, cache_dir=cache, config=plan.evaluator, placement=placement)
    async with opening as pool:
        for notice in pool.notices:
            print(notice, file=sys.stderr, flush=True)
        if plan.solutions is not None:
            yield pool, None
        elif plan.endpoint is not None:
            from rlkernel.policy.endpoint import open_endpoint

            async with open_endpoint(plan.endpoint, key, spent=ledger.cost) as endpoint:
                yield pool, endpoint
        else:
            # Seconds' worth of libraries, which the others need not wait for.
            from rlkernel.policy.hf import open_policy
            from rlkernel.policy.load import load_model

            assert placement is not None
            placement.limit_memory(pool.config)
            if not loaded:
                loaded.extend(load_model(flags.model))
                if placement.card is not None:
                    loaded[0].to("cuda")
            async with open_policy(
                *loaded,
                max_new_tokens=plan.max_new_tokens,
                temperature=flags.temperature,
                engine=flags.engine,
                lease=pool.lease if pool.shares else nullcontext,
            ) as policy:
                yield pool, PolicyWriter(policy)
