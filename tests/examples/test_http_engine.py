"""The engine over HTTP: it samples with the trainer's weights, takes new ones, and a run trains with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import torch

from examples.http_engine import ADDRESS, HttpEngine
from rlkernel.config import Run
from rlkernel.errors import UsageError
from rlkernel.policy.engine import Request
from rlkernel.policy.hf import open_engine
from rlkernel.policy.slots.engine import SlotEngine
from rlkernel.training.loop import train
from rlkernel.types import Evaluation, Problem, Status
from tests.policy import sampling
from tests.policy.sampling import context
from tests.policy.serving import serving
from tests.training.conftest import model_directory, run

__all__ = ["model_directory", "run"]
NAME = "examples.http_engine:HttpEngine"


class Accepting:
    """An evaluator that accepts everything, longer code more."""

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        return Evaluation(Status.CORRECT, "", speedup=1 + len(code or "") / 100, coverage=1.0, timing="modelled")


@pytest.fixture
def url(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serving(tiny_model) as address:
        monkeypatch.setenv(ADDRESS, address)
        yield address


def test_it_samples_what_our_own_engine_samples_before_and_after_new_weights(url: str, tiny_model: Any) -> None:
    stops, requests = frozenset(range(30)), [Request(i, context(9 + i, i), seed=i, budget=9) for i in range(5)]
    there: Any = open_engine(NAME, tiny_model, stops, 0.9, slots=3, copy=False)
    here = SlotEngine(tiny_model, stops, 0.9, slots=3)
    before = sampling.run(there, requests)
    assert before == sampling.run(here, requests)
    with torch.no_grad():
        for parameter in tiny_model.parameters():
            parameter.mul_(1.5)
    for engine in (there, here):
        engine.refresh()
    after = sampling.run(there, requests)
    assert after == sampling.run(here, requests)
    assert after != before
    there.close()


def test_weights_do_not_change_under_requests_and_nonsense_is_refused(url: str, tiny_model: Any) -> None:
    engine = HttpEngine(tiny_model, frozenset(), 1.0, slots=1)
    assert httpx.post(f"{url}/nothing").status_code == 400
    engine.advance([Request(0, context(8, 0), seed=0, budget=6)], 1)
    answer = httpx.post(f"{url}/weight?name=model.norm.weight", content=b"")
    assert (answer.status_code, answer.text) == (409, "the weights may not change while completions are being sampled")
    with pytest.raises(UsageError, match=r"refuses /advance: KeyError"):
        engine._post("/advance", json={"joining": []})
    engine.close()


def test_what_cannot_be_reached_or_imported_is_one_line(tiny_model: Any) -> None:
    with pytest.raises(UsageError, match=rf"127\.0\.0\.1:9/? does not answer .* is {ADDRESS} right\?"):
        HttpEngine(tiny_model, frozenset(), 1.0, url="http://127.0.0.1:9")
    for name in ("no.such.module:Engine", "examples.http_engine:Nothing"):
        with pytest.raises(UsageError, match=f"Run.engine is '{name}', which cannot be imported"):
            open_engine(name, tiny_model, frozenset(), 1.0, slots=1, copy=False)
    with pytest.raises(UsageError, match="rounds nothing in the engine"):
        open_engine(NAME, tiny_model, frozenset(), 1.0, slots=1, copy=False, rounding=torch.bfloat16)


def test_a_run_trains_with_it_as_with_our_own(url: str, run: Run, tmp_path: Path) -> None:
    rows = {}
    for engine in ("slots", NAME):
        directory = tmp_path / engine.partition(":")[0]
        anyio.run(lambda d=directory, e=engine: train(replace(run, engine=e, device="cpu"), d, evaluator=Accepting()))
        kept = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
        rows[engine] = [(row["split"], row["step"], row["reward"], row.get("loss"), row.get("grad_norm")) for row in kept]
    assert rows["slots"] == rows[NAME]
    assert len(rows[NAME]) == 3 + 3  # three steps, and validation before, after the second and at the end
