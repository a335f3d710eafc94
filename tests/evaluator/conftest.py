"""One evaluator per file: opening it costs seconds, and its children are what is tested.

Not per session: while it is open, its event loop belongs to the thread, and a test that starts its own could not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rlkernel.evaluator.pool import EvaluatorConfig, Limits, Pool, open_pool
from rlkernel.types import Problem

RED_TEAM = Path(__file__).parents[1] / "red_team"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def pool(anyio_backend: str) -> AsyncIterator[Pool]:
    config = EvaluatorConfig(limits=Limits(trace_seconds=8, run_seconds=20))
    async with open_pool(device="cpu", jobs=2, config=config) as opened:
        yield opened


@pytest.fixture(scope="session")
def relu() -> Problem:
    return Problem("relu", 1, "train", (RED_TEAM / "reference.py").read_text())
