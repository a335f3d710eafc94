"""What a recording leaves behind."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.gpu
def test_a_call_that_cannot_be_recorded_leaves_the_generator_usable() -> None:
    from rlkernel.evaluator.gpu.graphs import record  # which needs CUDA's bindings

    ones = torch.ones(8, device="cuda")
    assert record(lambda: ones * float((ones + torch.rand(8, device="cuda")).sum().item()), seed=1) is None
    torch.manual_seed(7)
    first = torch.rand(8, device="cuda")
    torch.manual_seed(7)
    assert torch.equal(torch.rand(8, device="cuda"), first)


@pytest.mark.gpu
def test_a_recorded_draw_after_a_failed_one_follows_its_seed() -> None:
    from rlkernel.evaluator.gpu.graphs import record, replay

    ones = torch.ones(8, device="cuda")
    assert record(lambda: ones * float(ones.sum().item()), seed=1) is None
    recorded = record(lambda: torch.rand(8, device="cuda") + ones, seed=3)
    assert recorded is not None
    result, graph = recorded
    replay(graph, 3)()
    torch.cuda.synchronize()
    once = result.clone()
    replay(graph, 3)()
    torch.cuda.synchronize()
    assert torch.equal(result, once)
    assert float(once.min()) >= 1.0
