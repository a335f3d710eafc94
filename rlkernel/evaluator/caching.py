"""The part that pools share: answers that need no evaluation, the cache, and one evaluation at a time of each candidate."""

from __future__ import annotations

from abc import ABC, abstractmethod

import anyio

from rlkernel.evaluator import cache as caches
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.types import Evaluation, Problem, Status


class CachingEvaluator(ABC):
    """An `rlkernel.interfaces.Evaluator` around `judge`, which a pool adds."""

    def __init__(self, cache: caches.ResultCache, device: str, config: EvaluatorConfig) -> None:
        self.cache = cache
        self.config = config
        self.device = device
        """The name of what times are measured on, as part of a result's key."""
        self.hits = 0
        self.misses = 0
        self._flying: dict[str, anyio.Event] = {}

    @abstractmethod
    async def judge(self, problem: Problem, code: str) -> Evaluation:
        """Evaluate one candidate now, whatever is known of it already. Raises BrokenReference, EvaluatorFailed."""

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        """Judge one candidate. Raises BrokenReference if the problem itself is unusable; a bad candidate is a value."""
        if code is None:  # a text without code was searched for it; a file needs no fence, and an empty one is judged
            return Evaluation(Status.NO_CODE, "no fenced python block with a ModelNew was found")
        if len(code.encode(errors="surrogatepass")) > self.config.limits.code_bytes:
            return Evaluation(Status.INVALID, f"the code is longer than {self.config.limits.code_bytes} bytes")
        name = caches.key(problem, code, self.device, repr(self.config))
        while True:
            known = self.cache.get(name)
            if known is not None:
                self.hits += 1
                return known
            if name not in self._flying:
                break
            await self._flying[name].wait()
        self._flying[name] = done = anyio.Event()
        try:
            result = await self.judge(problem, code)
            self.cache.put(name, result)
            self.misses += 1
            return result
        finally:
            del self._flying[name]
            done.set()
