"""An actor without torch, which starts in a second. A node's Ray imports it by its name."""

from __future__ import annotations

import os

import anyio

from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.ray.messages import Answer, Hello
from rlkernel.evaluator.version import source_version
from rlkernel.types import Evaluation, Problem, Status


class LightActor:
    """Finds every candidate correct. The first actor that gets `hold PATH` makes the folder PATH and never answers."""

    def __init__(self) -> None:
        self._stop = anyio.Event()
        self._open = anyio.Event()

    async def version(self) -> str:
        return source_version()

    async def serve(self, device: str, jobs: int, config: EvaluatorConfig) -> None:
        self._hello = Hello(device, (), jobs, config, ())
        self._open.set()
        await self._stop.wait()

    async def hello(self) -> Hello:
        await self._open.wait()
        return self._hello

    async def judge(self, ticket: int, problem: Problem, code: str) -> Answer:
        if code.startswith("hold "):
            try:
                os.mkdir(code.removeprefix("hold "))
            except FileExistsError:
                return Answer(Evaluation(Status.CORRECT, "held before"))
            await anyio.sleep_forever()
        return Answer(Evaluation(Status.CORRECT, f"light: {problem.name}"))

    async def stop(self) -> None:
        self._stop.set()
