"""One evaluator per file: opening it costs seconds, and its children are what is tested.

Not per session: while it is open, its event loop belongs to the thread, and a test that starts its own could not.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.evaluator.judging.references.flags import set_precision
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.types import Precision, Problem
from tests.patient import PATIENT
from tests.red_team import cases


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _precision_as_torch_ships() -> Iterator[None]:
    """Whoever judges in this process leaves its precision set."""
    yield
    set_precision(Precision.PYTORCH)


@pytest.fixture(autouse=True)
def _triton_as_it_ships() -> Iterator[None]:
    """Whoever interprets in this process takes back what the interpreter changed: tests of other files compile in it."""
    yield
    triton = sys.modules.get("triton.runtime.interpreter")
    assert triton is None or type(triton.interpreter_builder) is triton.InterpreterBuilder, "see patches.taken_back"


@pytest.fixture(scope="module")
async def pool(anyio_backend: str) -> AsyncIterator[Pool]:
    async with open_pool(device="cpu", jobs=2, config=PATIENT) as opened:
        yield opened


@pytest.fixture(scope="module")
async def hasty_pool(anyio_backend: str) -> AsyncIterator[Pool]:
    config = EvaluatorConfig(limits=Limits(trace_seconds=2, run_seconds=3))
    async with open_pool(device="cpu", jobs=2, config=config) as opened:
        yield opened


@pytest.fixture(scope="module")
async def gpu_pool(anyio_backend: str) -> AsyncIterator[Pool]:
    """For tests that are marked `gpu`: without a GPU, opening it fails and says so."""
    config = EvaluatorConfig(limits=Limits(trace_seconds=60, run_seconds=20))
    async with open_pool(device="cuda:0", jobs=8, config=config) as opened:
        yield opened


@pytest.fixture(scope="session")
def relu() -> Problem:
    return cases.relu()
