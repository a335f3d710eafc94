"""The slots against plain forward passes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from rlkernel.policy.engine import Request
from rlkernel.policy.slots.engine import SlotEngine
from tests.policy.sampling import context, fresh_logprobs, run


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


def test_only_the_very_same_beginning_is_reused(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset(), 1.0)
    first = Request(0, context(30, 0), seed=0, budget=6)
    held = first.context_ids + run(engine, [first])[0].token_ids[:-1]
    # As long, with the same last token, and two more.
    other = context(len(held) - 1, 1) + held[-1:] + (5, 6)
    sample = run(engine, [Request(1, other, seed=1, budget=8)])[1]
    expected = fresh_logprobs(tiny_model, other, sample.token_ids, 1.0)
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


def test_groups_of_contexts_of_other_lengths_are_all_right(tiny_model: Any) -> None:
    requests = [Request(i, context(20 + 9 * (i // 2), i // 2), seed=i, budget=6) for i in range(4)]
    samples = run(SlotEngine(tiny_model, frozenset(), 1.0), requests)
    for request in requests:
        expected = fresh_logprobs(tiny_model, request.context_ids, samples[request.key].token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(samples[request.key].logprobs), expected, atol=2e-5, rtol=0)


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


def test_a_small_model_computes_contexts_and_steps_on_one_thread(tiny_model: Any) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    seen: list[tuple[int, int]] = []
    hook = tiny_model.model.embed_tokens.register_forward_hook(
        lambda _, inputs, __: seen.append((inputs[0].shape[1], torch.get_num_threads()))
    )
    try:
        run(SlotEngine(tiny_model, frozenset(), 1.0), [Request(0, context(9, 0), seed=0, budget=3)])
        assert torch.get_num_threads() == 2
    finally:
        hook.remove()
        torch.set_num_threads(threads)
    # The context, and a step for each token after the first.
    assert seen == [(9, 1), (1, 1), (1, 1)]


def test_a_temperature_of_zero_is_refused(tiny_model: Any) -> None:
    with pytest.raises(ValueError, match="temperature is 0"):
        SlotEngine(tiny_model, frozenset(), 0)


def forward_shapes(model: Any) -> tuple[list[tuple[int, ...]], Any]:
    """Shapes (rows, tokens) of what the model is fed from now on, and the hook to remove."""
    shapes: list[tuple[int, ...]] = []
    hook = model.model.embed_tokens.register_forward_hook(lambda _, inputs, __: shapes.append(tuple(inputs[0].shape)))
    return shapes, hook


def test_more_requests_than_slots_wait_and_come_out_the_same(tiny_model: Any) -> None:
    requests = [Request(i, context(9 + 4 * i, i), seed=i, budget=3 + i) for i in range(9)]
    few, many = SlotEngine(tiny_model, frozenset({2}), 1.0, slots=2), SlotEngine(tiny_model, frozenset({2}), 1.0, slots=16)
    first = few.advance(requests, 0)
    assert few.active == 9 - len(first)
    assert few.free == 0
    left = {sample.key: sample for sample in first} | run(few, [])
    right = run(many, requests)
    assert few.active == 0 and few.free == 2
    assert {k: s.token_ids for k, s in left.items()} == {k: s.token_ids for k, s in right.items()}


def test_the_slot_that_was_idle_longest_is_overwritten_first(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset(), 1.0, slots=2)
    old, new = (Request(i, context(20, i), seed=i, budget=2 + i) for i in range(2))
    done = run(engine, [old, new])  # `old` finishes first
    run(engine, [Request(2, context(30, 2), seed=2, budget=2)])
    shapes, hook = forward_shapes(tiny_model)
    follow = [Request(k, r.context_ids + done[r.key].token_ids + (5,), seed=k, budget=2) for k, r in ((3, new), (4, old))]
    run(engine, follow[:1])
    # Its slot is still there: the last sampled token and the new one.
    assert shapes[0] == (1, 2)
    shapes.clear()
    run(engine, follow[1:])
    assert shapes[0] == (1, 20 + 2 + 1)
    hook.remove()


def test_two_continuations_of_one_trajectory_are_both_right(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset(), 1.0, slots=4)
    first = run(engine, [Request(0, context(20, 0), seed=0, budget=5)])[0]
    start = context(20, 0) + first.token_ids
    later = [Request(i, start + context(3 + i, i), seed=i, budget=6) for i in (1, 2)]
    for key, sample in run(engine, later).items():
        expected = fresh_logprobs(tiny_model, later[key - 1].context_ids, sample.token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=2e-5, rtol=0)


def test_a_prefill_is_bounded_and_long_contexts_come_in_pieces(tiny_model: Any) -> None:
    requests = [Request(i, context(length, i), seed=i, budget=1) for i, length in enumerate((100, 30, 30, 30, 7))]
    engine = SlotEngine(tiny_model, frozenset(), 1.0, prefill_tokens=64)
    shapes, hook = forward_shapes(tiny_model)
    samples = run(engine, requests)
    hook.remove()
    # 100 in pieces of 64; two times 30 are 60; the rest.
    assert shapes == [(1, 64), (1, 36), (2, 30), (2, 30)]
    for request in requests:
        expected = fresh_logprobs(tiny_model, request.context_ids, samples[request.key].token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(samples[request.key].logprobs), expected, atol=2e-5, rtol=0)


def test_a_cache_that_is_too_short_grows_under_rows_in_flight(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset(), 1.0, slots=3)
    short, long = Request(0, context(20, 0), seed=0, budget=30), Request(1, context(150, 1), seed=1, budget=40)
    engine.advance([short], 3)
    assert engine._cache is not None and engine._cache.room.positions == 128
    samples = run(engine, [long])
    # 190 positions are needed: 256, and half as much again since a later turn will want more.
    assert engine._cache.room.positions == 384
    for request in (short, long):
        expected = fresh_logprobs(tiny_model, request.context_ids, samples[request.key].token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(samples[request.key].logprobs), expected, atol=2e-5, rtol=0)


def test_little_memory_means_fewer_slots_and_too_little_is_told(tiny_model: Any) -> None:
    # 2 layers x 2 (keys, values) x 2 heads x 16 x 4 bytes: 512 bytes per position, 64 KiB per 128 positions.
    engine = SlotEngine(tiny_model, frozenset(), 1.0, slots=8, cache_bytes=4 * 65536)
    samples = run(engine, [Request(i, context(20, i), seed=i, budget=4) for i in range(8)])
    # Three, since one is scratch.
    assert engine.free == 3 and len(samples) == 8
    # Twice the positions: one slot, once the three are done.
    busy = [Request(i, context(20, i), seed=i, budget=10) for i in range(3)]
    engine.advance(busy, 1)
    long = Request(9, context(130, 0), seed=0, budget=6)
    assert engine.advance([long], 1) == []
    assert engine.active == 4
    assert set(run(engine, [])) == {0, 1, 2, 9}
    assert engine.free == 1
    with pytest.raises(ValueError, match=r"256 positions take 0\.0 GiB"):
        run(SlotEngine(tiny_model, frozenset(), 1.0, cache_bytes=65536), [long])


def test_looking_rarely_changes_nothing(tiny_model: Any) -> None:
    # On a GPU the host looks every few tokens: finished rows ride along.
    requests = [Request(i, context(6 + i, i), seed=i, budget=3 + 4 * i) for i in range(6)]
    often, rarely = (SlotEngine(tiny_model, frozenset(range(20)), 1.0) for _ in range(2))
    rarely.look_every = 10**9
    left, right = run(often, requests), run(rarely, requests)
    assert {k: s.token_ids for k, s in left.items()} == {k: s.token_ids for k, s in right.items()}
    follow = [Request(k, requests[k].context_ids + s.token_ids + (5, 6), seed=k, budget=5) for k, s in right.items()]
    for key, sample in run(rarely, follow).items():
        ids = next(request.context_ids for request in follow if request.key == key)
        expected = fresh_logprobs(tiny_model, ids, sample.token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=2e-5, rtol=0)


def test_a_finished_row_that_rides_along_stays_inside_its_slot(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset(), 1.0)
    engine.look_every = 10**9
    # The first fills its 128 positions at once; the other goes on for 38 tokens.
    samples = engine.advance([Request(0, context(126, 0), seed=0, budget=2), Request(1, context(20, 1), seed=1, budget=40)], 40)
    assert {sample.key: len(sample.token_ids) for sample in samples} == {0: 2, 1: 40}


def test_the_decode_step_is_one_graph_for_a_compiler(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # No break (fullgraph), and one trace serves every number of rows from two on, also of a cache that has grown.
    traced: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        traced.append(len(inputs))
        return graph.forward

    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", lambda f: compile_(f, backend=backend, fullgraph=True))
    requests = [Request(i, context(20 + i, i), seed=i, budget=4 + 3 * (i // 2)) for i in range(6)]
    engine = SlotEngine(tiny_model, frozenset(), 1.0, compiled=True)
    samples = run(engine, requests) | run(engine, [Request(i, context(140 + i, i), seed=i, budget=4) for i in (6, 7)])
    assert len(traced) == 1
    expected = run(SlotEngine(tiny_model, frozenset(), 1.0), requests)
    assert {k: samples[k].token_ids for k in expected} == {k: s.token_ids for k, s in expected.items()}


def test_contexts_are_computed_by_one_program_for_all_layers(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        traced.append(len(inputs))
        return graph.forward

    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", lambda f, **given: compile_(f, backend=backend, fullgraph=True, **given))
    plain, compiled = (SlotEngine(tiny_model, frozenset(), 1.0, slots=4, copy=True, compiled=c) for c in (False, True))
    requests = [Request(i, context(20 + i, i), seed=i, budget=4) for i in range(4)]
    for turn in range(2):
        expected, samples = run(plain, requests), run(compiled, requests)
        assert {k: s.token_ids for k, s in samples.items()} == {k: s.token_ids for k, s in expected.items()}
        # One for the decode step, and one for a block, whatever its layer, the rows, their lengths and what the slots hold.
        assert len(traced) == 2, turn
        requests = [Request(r.key, (*r.context_ids, *expected[r.key].token_ids, 7), r.seed + 9, 3) for r in requests]


def test_a_llama_is_sampled_from_as_well() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=100,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=1,
            max_position_embeddings=128,
        )
    ).eval()
    requests = [Request(i, tuple(range(3, 12 + i)), seed=i, budget=8) for i in range(3)]
    for key, sample in run(SlotEngine(model, frozenset({2}), 1.0), requests).items():
        expected = fresh_logprobs(model, requests[key].context_ids, sample.token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=2e-5, rtol=0)


def test_weights_that_diverged_are_told(tiny_model: Any) -> None:
    with torch.no_grad():
        tiny_model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="not finite"):
        run(SlotEngine(tiny_model, frozenset(), 1.0), [Request(0, (5, 6), seed=0, budget=2)])


@pytest.mark.parametrize("page", [16, 128])
def test_pages_change_no_sample(page: int, tiny_model: Any) -> None:
    """Two turns of six requests of very different length: the tokens of slots that are one page each, and of few slots."""
    whole = SlotEngine(tiny_model, frozenset({2}), 1.0, slots=6)
    paged = SlotEngine(tiny_model, frozenset({2}), 1.0, slots=3, page=page)
    requests = [Request(i, context(5 + 25 * i, i), seed=i, budget=4 + 7 * i) for i in range(6)]
    for _ in range(2):
        left, right = run(whole, requests), run(paged, requests)
        assert {k: s.token_ids for k, s in right.items()} == {k: s.token_ids for k, s in left.items()}
        for request in requests:
            expected = fresh_logprobs(tiny_model, request.context_ids, right[request.key].token_ids, 1.0)
            torch.testing.assert_close(torch.tensor(right[request.key].logprobs), expected, atol=2e-5, rtol=0)
        requests = [Request(r.key, (*r.context_ids, *left[r.key].token_ids, 7), r.seed + 9, 9) for r in requests]


def test_where_pages_run_out_the_last_gives_way_and_goes_on_where_it_was(tiny_model: Any) -> None:
    # 10 pages of 16 positions beside the scratch page, 8 KiB each; four requests of at most 20 + 60 positions want 20.
    requests = [Request(i, context(20, i), seed=i, budget=60) for i in range(4)]
    engine = SlotEngine(tiny_model, frozenset(), 1.0, slots=4, page=16, cache_bytes=11 * 8192)
    expected = run(SlotEngine(tiny_model, frozenset(), 1.0), requests)
    shapes, hook = forward_shapes(tiny_model)
    samples = run(engine, requests)
    hook.remove()
    # Two pages for a context and its first token, one that each will want: three fit into ten.
    assert shapes[0] == (3, 20)
    computed = [length for rows, length in shapes for _ in range(rows) if length > 1]
    # Some were computed again, with what they had sampled.
    assert len(computed) > 4 and sum(length > 20 for length in computed) >= 1
    for key, sample in samples.items():
        assert (sample.token_ids, sample.stop) == (expected[key].token_ids, "length")
        assert sample.logprobs == pytest.approx(expected[key].logprobs, abs=2e-5)
    assert engine.active == 0 and not engine._begun


def test_a_conversation_that_fits_no_pages_is_refused_and_one_that_just_fits_is_not(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset(), 1.0, slots=4, page=128, cache_bytes=3 * 65536)
    # Two pages and the scratch page: 256 positions.
    assert len(run(engine, [Request(0, context(200, 0), seed=0, budget=56)])[0].token_ids) == 56
    with pytest.raises(ValueError, match=r"384 positions take 0\.0 GiB of keys and values, of 0\.0 GiB"):
        run(engine, [Request(1, context(200, 0), seed=0, budget=57)])


def test_pages_of_idle_slots_are_taken_before_anybody_gives_way(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset(), 1.0, slots=4, page=16, cache_bytes=7 * 8192)
    first = run(engine, [Request(i, context(20, i), seed=i, budget=10) for i in range(2)])
    shapes, hook = forward_shapes(tiny_model)
    # Both hold two of six pages; the new one takes four to its end, two of them from what was idle longest.
    sample = run(engine, [Request(2, context(20, 2), seed=2, budget=40)])[2]
    for i in (1, 0):
        run(engine, [Request(3 + i, context(20, i) + first[i].token_ids + (5,), seed=3, budget=1)])
    hook.remove()
    computed = [length for _, length in shapes if length > 1]
    # The second was still there: its last sampled token and the new one.
    assert computed == [20, 2, 31]
    expected = fresh_logprobs(tiny_model, context(20, 2), sample.token_ids, 1.0)
    torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=2e-5, rtol=0)


def test_requests_that_wait_are_admitted_while_others_decode(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset(), 1.0, slots=2)
    requests = [Request(i, context(10 + i, i), seed=i, budget=budget) for i, budget in enumerate((3, 30, 3, 3))]
    # In one call: the short ones take turns beside the long one.
    samples = {sample.key: sample for sample in engine.advance(requests, 30)}
    assert list(samples) == [0, 2, 3, 1]
    for request in requests:
        expected = fresh_logprobs(tiny_model, request.context_ids, samples[request.key].token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(samples[request.key].logprobs), expected, atol=2e-5, rtol=0)


def test_pages_taken_in_advance_are_no_part_of_what_an_idle_slot_holds(tiny_model: Any) -> None:
    start, long = context(13, 0), context(40, 1)
    second = run(SlotEngine(tiny_model, frozenset(), 1.0), [Request(0, start, seed=0, budget=2)])[0].token_ids[1]
    # Three pages of 16 positions beside the scratch page, 8 KiB each. A look ahead takes 26 positions: two pages.
    engine = SlotEngine(tiny_model, frozenset({second}), 1.0, slots=2, page=16, cache_bytes=4 * 8192)
    engine.look_every = 16
    (ended,) = engine.advance([Request(0, start, seed=0, budget=13)], 16)
    # 14 positions have keys and values, which are one page.
    assert (len(ended.token_ids), engine._held.pages.free) == (2, 2)
    # It goes on within that page, beside a request that takes the other two.
    more = [Request(1, start + ended.token_ids, seed=1, budget=1), Request(2, context(25, 2), seed=2, budget=7)]
    for request, sample in zip(more, run(engine, more).values(), strict=True):
        expected = fresh_logprobs(tiny_model, request.context_ids, sample.token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=2e-5, rtol=0)

    # Two pairs that go on from equal contexts of one page and of three.
    engine = SlotEngine(tiny_model, frozenset({second}), 1.0, slots=4, page=16)
    engine.look_every = 16
    ends = engine.advance([Request(0, start, seed=0, budget=13), Request(1, long, seed=1, budget=1)], 16)
    contexts = {sample.key: (start, long)[sample.key] + sample.token_ids for sample in ends}
    pairs = [Request(2 * i + k, contexts[i], seed=k, budget=1) for i in (0, 1) for k in (0, 1)]
    samples = run(engine, pairs)
    for request in pairs:
        expected = fresh_logprobs(tiny_model, request.context_ids, samples[request.key].token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(samples[request.key].logprobs), expected, atol=2e-5, rtol=0)
