"""What every engine does, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from examples.http_engine import HttpEngine
from rlkernel.policy.batched import GenerateEngine
from rlkernel.policy.engine import Engine, Request, check_idle, uniforms
from rlkernel.policy.slots.engine import SlotEngine
from tests.policy.sampling import context, fresh_logprobs, run
from tests.policy.serving import serving

Make = Callable[..., Engine]
STOPS = frozenset(range(30))  # a tenth of the vocabulary
ENGINES = pytest.mark.parametrize("make", [GenerateEngine, SlotEngine, HttpEngine], indirect=True)


@pytest.fixture
def make(request: pytest.FixtureRequest, tiny_model: Any) -> Iterator[Make]:
    """The class of an engine; for `HttpEngine` with a server whose model has other weights of its own."""
    if request.param is not HttpEngine:
        yield request.param
        return
    with serving(tiny_model) as url:
        made: list[HttpEngine] = []

        def connected(*given: Any, **changes: Any) -> Engine:
            made.append(HttpEngine(*given, url=url, **changes))
            return made[-1]

        yield connected
        for engine in made:
            engine.close()


@ENGINES
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logprobs_are_those_of_a_plain_forward_pass(make: Make, temperature: float, tiny_model: Any) -> None:
    requests = [Request(i, context(9 + 4 * i, i), seed=i, budget=5 + 3 * i) for i in range(7)]
    samples = run(make(tiny_model, STOPS, temperature, slots=3), requests)
    assert {sample.stop for sample in samples.values()} == {"stop", "length"}
    for request in requests:
        sample = samples[request.key]
        assert (sample.token_ids[-1] in STOPS) == (sample.stop == "stop")
        assert not STOPS & set(sample.token_ids[:-1])
        assert sample.stop == "stop" or len(sample.token_ids) == request.budget
        expected = fresh_logprobs(tiny_model, request.context_ids, sample.token_ids, temperature)
        torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=2e-5, rtol=0)


def test_all_engines_draw_the_same_samples(tiny_model: Any) -> None:
    requests = [Request(i, context(9 + 4 * i, i), seed=i, budget=5 + 3 * i) for i in range(7)]
    slots, generate = (run(make(tiny_model, STOPS, 1.0, slots=3), requests) for make in (SlotEngine, GenerateEngine))
    for key, sample in slots.items():
        assert (generate[key].token_ids, generate[key].stop) == (sample.token_ids, sample.stop)
        assert generate[key].logprobs == pytest.approx(sample.logprobs, abs=2e-5)


@ENGINES
def test_a_completion_goes_on_where_it_was_cut(make: Make, tiny_model: Any) -> None:
    """Three pieces of 4, 1 and 7 tokens, of which each has the earlier ones in its context, are the whole of 12."""
    engine = make(tiny_model, frozenset(), 1.0, slots=3)
    whole = run(engine, [Request(i, context(9 + 4 * i, i), seed=i, budget=12) for i in range(3)])
    ids: dict[int, tuple[int, ...]] = dict.fromkeys(range(3), ())
    for budget in (4, 1, 7):
        pieces = run(engine, [Request(i, context(9 + 4 * i, i) + ids[i], i, budget, drawn=len(ids[i])) for i in range(3)])
        ids = {i: ids[i] + pieces[i].token_ids for i in range(3)}
    assert ids == {i: whole[i].token_ids for i in range(3)}


@ENGINES
def test_requests_are_counted_until_they_are_done(make: Make, tiny_model: Any) -> None:
    engine = make(tiny_model, frozenset(), 1.0, slots=2)
    assert (engine.active, engine.free) == (0, 2)
    finished = engine.advance([Request(i, context(8, i), seed=i, budget=6) for i in range(3)], 1)
    # At most two are sampled at a time: at least one is still there.
    assert engine.active == 3 - len(finished) >= 1
    assert engine.free == max(0, 2 - engine.active)
    run(engine, [])
    assert (engine.active, engine.free) == (0, 2)


@ENGINES
def test_weights_may_not_change_under_requests(make: Make, tiny_model: Any) -> None:
    engine = make(tiny_model, frozenset(), 1.0, slots=1)
    engine.advance([Request(i, context(8, i), seed=i, budget=6) for i in range(2)], 1)
    with pytest.raises(RuntimeError, match="weights may not change"):
        engine.refresh()
    with pytest.raises(RuntimeError, match="weights may not change"):
        check_idle(engine)
    run(engine, [])
    check_idle(engine)


@ENGINES
@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_a_temperature_that_is_not_positive_is_refused(make: Make, temperature: float, tiny_model: Any) -> None:
    with pytest.raises(ValueError, match=f"temperature is {temperature}: it must be positive"):
        make(tiny_model, frozenset(), temperature)


def test_random_numbers_depend_on_the_seed_alone() -> None:
    one = uniforms(Request(0, (1, 2), seed=5, budget=40))
    assert (one.dtype, one.shape, one.device.type) == (torch.float64, (40,), "cpu")
    assert bool(((one >= 0) & (one < 1)).all())
    # Another key, context and budget: the first numbers are the same.
    assert torch.equal(uniforms(Request(9, (3,), seed=5, budget=8)), one[:8])
    assert torch.equal(uniforms(Request(9, (3,), seed=5, budget=8, drawn=20)), one[20:28])
    assert not torch.equal(uniforms(Request(0, (1, 2), seed=6, budget=40)), one)
