"""The engine around Transformers' own `generate`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlkernel.policy.batched import GenerateEngine
from rlkernel.policy.engine import Request
from tests.policy.sampling import context, run


def test_a_batch_is_sampled_to_its_end_and_the_others_wait(tiny_model: Any) -> None:
    rows: list[int] = []
    hook = tiny_model.model.embed_tokens.register_forward_hook(lambda _, inputs, __: rows.append(inputs[0].shape[0]))
    engine = GenerateEngine(tiny_model, frozenset(), 1.0, slots=3)
    requests = [Request(i, context(8 + i, i), seed=i, budget=4 + i) for i in range(5)]
    # One token was asked for, but a batch ends with its longest completion: budgets 4, 5 and 6.
    first = engine.advance(requests, 1)
    assert [(sample.key, len(sample.token_ids)) for sample in first] == [(0, 4), (1, 5), (2, 6)]
    assert (engine.active, engine.free) == (2, 1)
    second = engine.advance([], 1)
    hook.remove()
    assert [(sample.key, len(sample.token_ids)) for sample in second] == [(3, 7), (4, 8)]
    assert rows == [3] * 6 + [2] * 8
    assert engine.advance([], 1) == []


def test_a_row_is_cut_at_its_own_end(tiny_model: Any) -> None:
    requests = [Request(0, context(8, 0), seed=0, budget=12), Request(1, context(30, 1), seed=1, budget=12)]
    whole = run(GenerateEngine(tiny_model, frozenset(), 1.0), requests)
    stop = whole[0].token_ids[3]
    first = whole[0].token_ids.index(stop)
    cut = run(GenerateEngine(tiny_model, frozenset({stop}), 1.0), requests)
    assert cut[0].token_ids == whole[0].token_ids[: first + 1] and cut[0].stop == "stop"
    assert cut[0].logprobs == pytest.approx(whole[0].logprobs[: first + 1], abs=2e-5)


def test_padding_on_the_left_changes_no_sample(tiny_model: Any) -> None:
    request = Request(0, context(8, 0), seed=0, budget=10)
    alone = run(GenerateEngine(tiny_model, frozenset(), 1.0), [request])[0]
    beside = run(GenerateEngine(tiny_model, frozenset(), 1.0), [request, Request(1, context(60, 1), seed=1, budget=3)])[0]
    assert beside.token_ids == alone.token_ids
    assert beside.logprobs == pytest.approx(alone.logprobs, abs=2e-5)


def test_a_copy_keeps_its_weights_until_refreshed(tiny_model: Any) -> None:
    engine = GenerateEngine(tiny_model.train(), frozenset(), 1.0, copy=True)
    request = Request(0, context(12, 0), seed=0, budget=6)
    first = run(engine, [request])[0]
    with torch.no_grad():
        tiny_model.model.layers[0].self_attn.v_proj.weight.mul_(3.0)
    assert run(engine, [request])[0].logprobs == first.logprobs
    engine.refresh()
    assert run(engine, [request])[0].logprobs != pytest.approx(first.logprobs, abs=1e-2)
    assert tiny_model.training
