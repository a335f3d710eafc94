"""The evaluator for other people's trainers, which have no event loop or one of their own.

open_service() opens the pool on a loop in a thread of its own. `Service.evaluate` is a plain blocking call, and
`Service.evaluate_async` is awaited on any asyncio loop; both may be used from many threads and tasks at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from rlkernel.errors import UsageError
from rlkernel.evaluator.pool import open_pool
from rlkernel.interfaces import CardEvaluator, Evaluator
from rlkernel.types import Evaluation, Problem


@dataclass(frozen=True)
class Service:
    """The evaluator for callers in any thread or event loop, made by `open_service`."""

    _portal: BlockingPortal
    _evaluator: Evaluator

    def describe(self) -> Mapping[str, Any]:
        """What judges, with every limit; empty for an evaluator that does not say."""
        return self._evaluator.describe() if isinstance(self._evaluator, CardEvaluator) else {}

    def submit(self, problem: Problem, code: str | None) -> Future[Evaluation]:
        """Begin an evaluation; the future raises what `Evaluator.evaluate` raises. Raises UsageError for what is no problem or no
        candidate, and RuntimeError once the service is closed."""
        if not isinstance(problem, Problem):
            raise UsageError(
                f"the problem is a {type(problem).__name__}: give an rlkernel.types.Problem, e.g. Problem(name, 0, "
                "'train', source) with the text of the reference's file as its source"
            )
        if code is not None and not isinstance(code, str):
            raise UsageError(f"the candidate is a {type(code).__name__}: give the text of its file, or None where there is none")
        return self._portal.start_task_soon(self._evaluator.evaluate, problem, code)

    def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        """Judge one candidate, and wait for the verdict."""
        return self.submit(problem, code).result()

    async def evaluate_async(self, problem: Problem, code: str | None) -> Evaluation:
        """Judge one candidate from an asyncio loop, which goes on meanwhile. Cancelled, it cancels the evaluation."""
        return await asyncio.wrap_future(self.submit(problem, code))


@contextmanager
def open_service(evaluator: Evaluator | None = None, **options: Any) -> Iterator[Service]:
    """An evaluator with `options` of `rlkernel.evaluator.pool.open_pool`, or one that is given and belongs to no loop.

    Leaving the context leaves no process, file or thread behind. Raises ValueError for a device that this machine cannot serve.
    """
    with start_blocking_portal("asyncio") as portal:
        if evaluator is not None:
            yield Service(portal, evaluator)
            return
        with portal.wrap_async_context_manager(open_pool(**options)) as pool:
            yield Service(portal, pool)
