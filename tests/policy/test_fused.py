"""Joined matrices compute what separate ones do, keep their names, and see what is written into these."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from rlkernel.policy.fused import First, fuse


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=torch.arange(3, 15)[None]).logits
    return found


def test_products_and_names_are_those_of_separate_matrices(tiny_model: Any) -> None:
    fused = copy.deepcopy(tiny_model).requires_grad_(False)
    names = list(fused.state_dict())
    assert fuse(fused) == 2 * 2  # attention and feed-forward of two layers
    assert fuse(fused) == 0  # once
    assert list(fused.state_dict()) == names
    torch.testing.assert_close(logits(fused), logits(tiny_model), atol=1e-5, rtol=1e-5)
    # New weights, written by name.
    with torch.no_grad():
        for (_, mine), theirs in zip(fused.named_parameters(), tiny_model.parameters(), strict=True):
            theirs.mul_(1.1)
            mine.copy_(theirs)
    torch.testing.assert_close(logits(fused), logits(tiny_model), atol=1e-5, rtol=1e-5)
    assert all(not held for module in fused.modules() if isinstance(module, First) for held in [module._waiting])


def test_a_pass_that_was_interrupted_leaves_nothing_to_the_next(tiny_model: Any) -> None:
    fused = copy.deepcopy(tiny_model).requires_grad_(False)
    fuse(fused)
    fused.model.layers[0].self_attn.q_proj(torch.ones(1, 4, 64))  # and out of memory before keys and values are asked for
    torch.testing.assert_close(logits(fused), logits(tiny_model), atol=1e-5, rtol=1e-5)


def test_biases_are_joined_too() -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=50, num_hidden_layers=1, **sizes)).eval()
    for parameter in model.parameters():  # biases start as 0
        torch.nn.init.normal_(parameter, std=0.1)
    fused = copy.deepcopy(model).requires_grad_(False)
    assert fuse(fused) == 2
    torch.testing.assert_close(logits(fused), logits(model), atol=1e-5, rtol=1e-5)


def test_a_compiler_sees_one_product_and_no_side_effect(tiny_model: Any) -> None:
    fused = copy.deepcopy(tiny_model).requires_grad_(False)
    fuse(fused)
    block = fused.model.layers[0].mlp
    explained = torch._dynamo.explain(block)(torch.ones(1, 4, 64))
    assert explained.graph_break_count == 0
    assert sum("linear" in str(node.target) for graph in explained.graphs for node in graph.graph.nodes) == 2
