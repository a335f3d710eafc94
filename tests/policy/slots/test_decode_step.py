"""The decode step: what is drawn, recorded and stopped, slot by slot."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlkernel.policy.slots.cache import SLOTS, SlotCache
from rlkernel.policy.slots.decode_step import DecodeStep, SlotState, width
from rlkernel.policy.slots.decoding import for_decoding
from rlkernel.policy.slots.pages import Room
from rlkernel.policy.slots.prefill import PrefillRow, prefill
from tests.policy.sampling import context, fresh_logprobs

CPU = torch.device("cpu")
STOP = 3


def opened(state: SlotState, lengths: list[int], budgets: list[int]) -> None:
    """Begin completions in the first slots, whose random numbers are all 0.5."""
    count = len(lengths)
    state.length_S[:count] = torch.tensor(lengths, dtype=torch.int32)
    state.budget_S[:count] = torch.tensor(budgets)
    state.count_S[:count], state.done_S[:count] = 0, False
    state.uniform_ST[:count] = 0.5


def step(state: SlotState) -> DecodeStep:
    """A step over five tokens, for what needs neither a model nor a cache."""
    stop_V = torch.zeros(5, dtype=torch.bool)
    stop_V[STOP] = True
    return DecodeStep(None, None, state, stop_V, 1.0, compiled=False)  # type: ignore[arg-type]


def certain(*tokens: int) -> torch.Tensor:
    """Logits (n, 5) under which each token is certain."""
    return torch.full((len(tokens), 5), -1e9).scatter(1, torch.tensor(tokens)[:, None], 0.0)


def test_a_new_state_is_idle_everywhere() -> None:
    state = SlotState(2, 4, CPU)
    assert state.done_S.tolist() == [True] * 3  # the last one is scratch
    assert state.ids_ST.shape == state.logprob_ST.shape == state.uniform_ST.shape == (3, 4)


def test_tokens_are_recorded_until_a_stop_or_the_budget() -> None:
    state = SlotState(3, 4, CPU)
    opened(state, [7, 7, 7], [4, 2, 4])
    decode = step(state)
    everything = torch.tensor([0, 1, 2])
    decode.emit(everything, certain(1, 1, 2))
    assert state.done_S[:3].tolist() == [False, False, False]
    decode.emit(everything, certain(STOP, 2, 4))
    # The first stopped; the second has its two tokens; the third goes on.
    assert state.done_S[:3].tolist() == [True, True, False]
    decode.emit(everything, certain(4, 4, 0))
    assert state.ids_ST[:3].tolist() == [[1, STOP, 0, 0], [1, 2, 0, 0], [2, 4, 0, 0]]
    assert state.count_S[:3].tolist() == [2, 2, 3]
    assert state.token_S[:3].tolist() == [STOP, 2, 0]


def test_logprobs_are_those_of_the_drawn_tokens() -> None:
    state = SlotState(1, 2, CPU)
    opened(state, [1], [2])
    probabilities = torch.tensor([[0.1, 0.2, 0.4, 0.2, 0.1]])
    step(state).emit(torch.tensor([0]), probabilities.log())
    # 0.5 lies between 0.3 and 0.7: the third token.
    assert state.ids_ST[0, 0] == 2
    assert abs(float(state.logprob_ST[0, 0].exp()) - 0.4) < 1e-6


def test_a_state_is_taken_over_in_the_order_of_what_stays() -> None:
    old, new = SlotState(3, 2, CPU), SlotState(2, 4, CPU)
    opened(old, [5, 6, 7], [2, 2, 2])
    old.ids_ST[:3] = torch.tensor([[1, 2], [3, 4], [5, 6]])
    new.copy_from(old, [2, 0])
    assert new.length_S.tolist() == [7, 5, 0]
    assert new.ids_ST.tolist() == [[5, 6, 0, 0], [1, 2, 0, 0], [0] * 4]
    assert new.done_S.tolist() == [False, False, True]


@pytest.mark.parametrize("size", [8, 64])
def test_steps_after_a_prefill_follow_the_model(size: int, tiny_model: Any) -> None:
    config, contexts, room = tiny_model.config, [context(9, 0), context(14, 1)], Room(128 // size, size, 64)
    cache, state = SlotCache(config, 2, room, torch.float32, CPU, kernels=False, opaque=False), SlotState(2, 6, CPU)
    for slot in (1, 0):
        cache.pages.take(slot, 20)
    cache.write([0, 1])
    opened(state, [len(ids) for ids in contexts], [6, 4])
    decode = DecodeStep(tiny_model, cache, state, torch.zeros(config.vocab_size, dtype=torch.bool), 1.0, compiled=False)
    with torch.no_grad(), for_decoding(tiny_model, SLOTS):
        for slots, logits in prefill(tiny_model, cache, [PrefillRow(ids, 0, (s,)) for s, ids in enumerate(contexts)], 64):
            decode.emit(torch.tensor(slots), logits)
        decode.run([0, 1], 5)
    assert state.count_S.tolist() == [6, 4, 0] and state.done_S.tolist() == [True, True, True]
    # The context and all tokens but the last have keys and values; a slot that is done takes no more.
    assert state.length_S[:2].tolist() == [9 + 5, 14 + 3]
    for s, ids in enumerate(contexts):
        sampled = tuple(state.ids_ST[s, : int(state.count_S[s])].tolist())
        torch.testing.assert_close(
            state.logprob_ST[s, : len(sampled)], fresh_logprobs(tiny_model, ids, sampled, 1.0), atol=2e-5, rtol=0
        )


def test_few_graphs_serve_all_numbers_of_rows() -> None:
    assert len({width(n, 128) for n in range(1, 129)}) == 7  # 2, 4, 8, ... 128
    assert all(n <= width(n, 128) <= 2 * n for n in range(1, 129))
