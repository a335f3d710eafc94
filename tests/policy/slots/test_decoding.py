"""A model that is borrowed for sampling comes back as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlkernel.policy.slots import decoding
from rlkernel.policy.slots.decoding import for_decoding, one_thread_if_small


@pytest.mark.parametrize("training", [True, False])
def test_mode_and_attention_are_put_back_also_after_a_failure(training: bool, tiny_model: Any) -> None:
    tiny_model.train(training)
    before = tiny_model.config._attn_implementation
    with pytest.raises(RuntimeError, match="mine"), for_decoding(tiny_model, "eager"):
        assert not tiny_model.training and tiny_model.config._attn_implementation == "eager"
        raise RuntimeError("mine")
    assert (tiny_model.training, tiny_model.config._attn_implementation) == (training, before)


@pytest.fixture
def two_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_a_small_model_takes_one_thread(two_threads: None, tiny_model: Any) -> None:
    with one_thread_if_small(tiny_model):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_a_large_model_keeps_its_threads(two_threads: None, tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "SMALL", tiny_model.num_parameters())
    with one_thread_if_small(tiny_model):
        assert torch.get_num_threads() == 2
