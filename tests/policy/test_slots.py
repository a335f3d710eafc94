"""The slots against plain forward passes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlkernel.policy.engine import Engine, Request, Sample
from rlkernel.policy.slots import SlotEngine


def context(length: int, seed: int) -> tuple[int, ...]:
    return tuple(torch.randint(3, 250, (length,), generator=torch.Generator().manual_seed(seed)).tolist())


def run(engine: Engine, requests: list[Request]) -> dict[int, Sample]:
    samples = engine.advance(requests, 0)
    while engine.active:
        samples += engine.advance([], 5)
    return {sample.key: sample for sample in samples}


@torch.no_grad()
def fresh_logprobs(model: Any, context_ids: tuple[int, ...], token_ids: tuple[int, ...], temperature: float) -> torch.Tensor:
    """One unpadded forward pass over the whole sequence."""
    ids = torch.tensor([[*context_ids, *token_ids]])
    logits = model(input_ids=ids).logits[0, len(context_ids) - 1 : -1].float() / temperature
    return logits.log_softmax(-1).gather(1, torch.tensor(token_ids)[:, None])[:, 0]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_recorded_logprobs_equal_a_fresh_forward_pass(tiny_model: Any, temperature: float) -> None:
    engine = SlotEngine(tiny_model, frozenset({2}), temperature)
    requests = [Request(i, context(10 + 7 * i, i), seed=i, budget=20) for i in range(5)]
    # Two rows join while three are in flight.
    samples = {sample.key: sample for sample in engine.advance(requests[:3], 4)}
    samples |= run(engine, requests[3:])
    assert samples.keys() == {0, 1, 2, 3, 4}
    for request in requests:
        sample = samples[request.key]
        expected = fresh_logprobs(tiny_model, request.context_ids, sample.token_ids, temperature)
        torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=2e-5, rtol=0)


def test_a_second_turn_reuses_the_first_and_stays_exact(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset({2}), 1.0)
    requests = [Request(i, context(30 + i, i), seed=i, budget=12) for i in range(3)]
    first = run(engine, requests)
    later = [
        Request(i + 10, request.context_ids + first[i].token_ids + context(5 + 3 * i, 50 + i), seed=i + 10, budget=12)
        for i, request in enumerate(requests)
    ]
    widths: list[int] = []
    hook = tiny_model.model.embed_tokens.register_forward_hook(lambda _, inputs, __: widths.append(inputs[0].shape[1]))
    second = run(engine, later)
    hook.remove()
    # Only the last sampled token and the new context are computed, right-padded: 1 + 5 + 3 * 2.
    assert widths[0] == 12
    for request in later:
        sample = second[request.key]
        expected = fresh_logprobs(tiny_model, request.context_ids, sample.token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=2e-5, rtol=0)


def test_refresh_drops_what_old_weights_computed(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset({2}), 1.0)
    request = Request(0, context(30, 0), seed=0, budget=8)
    first = run(engine, [request])[0]
    later = Request(1, request.context_ids + first.token_ids + (5, 6), seed=1, budget=8)
    with torch.no_grad():
        tiny_model.model.layers[0].self_attn.v_proj.weight.mul_(3.0)
    engine.refresh()
    sample = run(engine, [later])[1]
    expected = fresh_logprobs(tiny_model, later.context_ids, sample.token_ids, 1.0)
    torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=2e-5, rtol=0)


def test_weights_may_not_change_while_rows_are_in_flight(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset(), 1.0)
    engine.advance([Request(0, context(4, 0), seed=0, budget=9)], 1)
    with pytest.raises(RuntimeError, match="weights may not change"):
        engine.refresh()


def test_a_completion_depends_on_its_seed_and_not_on_its_neighbours(tiny_model: Any) -> None:
    request = Request(0, context(20, 0), seed=7, budget=15)
    alone = run(SlotEngine(tiny_model, frozenset({2}), 1.0), [request])[0]
    neighbours = [Request(i, context(5 * i, i), seed=i, budget=15) for i in range(1, 5)]
    together = run(SlotEngine(tiny_model, frozenset({2}), 1.0), [*neighbours, request])[0]
    assert together.token_ids == alone.token_ids
    other = Request(0, request.context_ids, seed=8, budget=15)
    assert run(SlotEngine(tiny_model, frozenset({2}), 1.0), [other])[0].token_ids != alone.token_ids


def test_equal_contexts_share_a_prefill_but_not_a_sample(tiny_model: Any) -> None:
    requests = [Request(i, context(20, 0), seed=i, budget=6) for i in range(4)]
    rows: list[int] = []
    hook = tiny_model.model.embed_tokens.register_forward_hook(lambda _, inputs, __: rows.append(inputs[0].shape[0]))
    samples = run(SlotEngine(tiny_model, frozenset(), 1.0), requests)
    hook.remove()
    assert rows[:2] == [1, 4]
    assert len({sample.token_ids for sample in samples.values()}) == 4


def test_stop_token_is_included_and_the_budget_ends_the_rest(tiny_model: Any) -> None:
    requests = [Request(i, context(6, i), seed=i, budget=30) for i in range(8)]
    stops = frozenset(range(30))  # a tenth of the vocabulary
    samples = run(SlotEngine(tiny_model, stops, 1.0), requests).values()
    assert {sample.stop for sample in samples} == {"stop", "length"}
    for sample in samples:
        assert not any(token in stops for token in sample.token_ids[:-1])
        assert (sample.token_ids[-1] in stops) == (sample.stop == "stop")
        assert len(sample.token_ids) == 30 or sample.stop == "stop"
        assert len(sample.logprobs) == len(sample.token_ids) >= 1


def test_samples_follow_the_model_distribution(tiny_model: Any) -> None:
    # 4000 first tokens against the exact distribution, chi-square over the 9 likeliest tokens and the rest.
    ids, count = context(12, 3), 4000
    with torch.no_grad():
        p = tiny_model(input_ids=torch.tensor([ids])).logits[0, -1].float().div(0.3).softmax(-1)
    samples = SlotEngine(tiny_model, frozenset(), 0.3, slots=count).advance(
        [Request(i, ids, seed=i, budget=1) for i in range(count)], 1
    )
    drawn = torch.bincount(torch.tensor([sample.token_ids[0] for sample in samples]), minlength=len(p)).double()
    top = p.topk(9).indices
    expected = torch.cat([p[top], 1 - p[top].sum(0, keepdim=True)]).double() * count
    observed = torch.cat([drawn[top], count - drawn[top].sum(0, keepdim=True)])
    # 99.99 % quantile of chi-square with 9 degrees of freedom: 33.7
    assert float(((observed - expected) ** 2 / expected).sum()) < 33.7


def test_the_model_is_left_as_it_was(tiny_model: Any) -> None:
    tiny_model.train()
    threads = torch.get_num_threads()
    run(SlotEngine(tiny_model, frozenset(), 1.0), [Request(0, (5, 6), seed=0, budget=2)])
    assert tiny_model.training
    assert tiny_model.config._attn_implementation == "sdpa"
    assert torch.get_num_threads() == threads


def test_a_temperature_of_zero_is_refused(tiny_model: Any) -> None:
    with pytest.raises(ValueError, match="temperature is 0"):
        SlotEngine(tiny_model, frozenset(), 0)
