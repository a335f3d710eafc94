"""The layout of a micro-batch: by hand, and against TRL's own layout through its real loss."""

from __future__ import annotations

from typing import Any

import torch

from rlkernel.training.micro_batches import CAUSAL, causal_attention, left_align


def test_rows_start_in_column_zero_and_what_was_prompt_is_masked() -> None:
    inputs = {
        # Prompts 1 2 3 and 4; completions 5 and 6 7 (both with one column that nobody in this micro-batch needs).
        "prompt_ids": torch.tensor([[0, 1, 2, 3], [0, 0, 0, 4]]),
        "prompt_mask": torch.tensor([[0, 1, 1, 1], [0, 0, 0, 1]]),
        "completion_ids": torch.tensor([[5, 0, 0], [6, 7, 0]]),
        "completion_mask": torch.tensor([[1, 0, 0], [1, 1, 0]]),
        "tool_mask": torch.tensor([[1, 0, 0], [0, 1, 0]]),
        "advantages": torch.tensor([[0.5, 0.0, 0.0], [-1.0, -2.0, 0.0]]),
        "num_items_in_batch": torch.tensor(7),
    }
    aligned = left_align(inputs)
    assert {key: value.tolist() for key, value in aligned.items()} == {
        "prompt_ids": [[1], [4]],
        "prompt_mask": [[1], [1]],
        "completion_ids": [[2, 3, 5], [6, 7, 0]],
        "completion_mask": [[1, 1, 1], [1, 1, 0]],
        "tool_mask": [[0, 0, 1], [0, 1, 0]],
        "advantages": [[0.0, 0.0, 0.5], [-1.0, -2.0, 0.0]],
        "num_items_in_batch": 7,
    }


def test_causal_attention_sees_the_same_as_a_mask(tiny_model: Any) -> None:
    ids = torch.randint(3, 250, (3, 20), generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(20) < torch.tensor([[20], [11], [4]])).long()
    expected = tiny_model(input_ids=ids, attention_mask=mask).logits
    with causal_attention(tiny_model):
        assert tiny_model.config._attn_implementation == CAUSAL
        got = tiny_model(input_ids=ids, attention_mask=mask).logits
    assert tiny_model.config._attn_implementation == "sdpa"
    torch.testing.assert_close(got[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=1e-5)


def test_models_with_a_window_keep_their_attention(tiny_model: Any) -> None:
    tiny_model.config.sliding_window = 4
    with causal_attention(tiny_model):
        assert tiny_model.config._attn_implementation == "sdpa"
