"""Compiled blocks of a model."""

import threading
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from transformers.modeling_layers import GradientCheckpointingLayer

from rlkernel.policy.blocks import compile_blocks


class Doubling(GradientCheckpointingLayer):  # type: ignore[misc, no-untyped-call]
    """A block that doubles its input, compiled without a compiler of C++."""

    def compile(self, **given: Any) -> None:
        super().compile(backend="eager", **given)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


@torch._dynamo.config.patch(force_compile_during_fx_trace=False)  # and back after the test
def test_a_block_computes_while_another_thread_is_traced() -> None:
    model = torch.nn.Sequential(Doubling())
    assert compile_blocks(model) == 1
    ones = torch.ones(4)
    torch.testing.assert_close(model(ones), 2 * ones)
    inside, go_on = threading.Event(), threading.Event()

    def traced(x: torch.Tensor) -> torch.Tensor:
        inside.set()
        assert go_on.wait(60)
        return x + 1

    graphs: list[Any] = []
    thread = threading.Thread(target=lambda: graphs.append(make_fx(traced)(ones)))
    thread.start()
    try:
        assert inside.wait(60)
        found = model(ones)
    finally:
        go_on.set()
        thread.join()
    torch.testing.assert_close(found, 2 * ones)
    torch.testing.assert_close(graphs[0](ones), ones + 1)
