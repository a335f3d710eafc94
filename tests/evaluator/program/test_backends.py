"""Operators for which torch chooses cuDNN: a Program that is replayed on a GPU does what a module does there."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlkernel.evaluator.program.backends import ON_CUDA
from rlkernel.evaluator.program.operators import operator
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.values import TensorRef

NORM = "aten.native_batch_norm.default"


def arguments(device: str, training: bool) -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 32, 14, 14, generator=generator).to(device)
    return [x, *(torch.rand(32, generator=generator).to(device) for _ in range(4)), training, 0.1, 1e-5]


@pytest.mark.parametrize("training", [True, False])
def test_what_chooses_a_batch_norm_gives_what_a_trace_has_seen(training: bool) -> None:
    mine, theirs = arguments("cpu", training), arguments("cpu", training)
    found, wanted = ON_CUDA[NORM](*mine), operator(NORM)(*theirs)
    assert len(found) == len(wanted) == 3
    assert all(torch.equal(a, b) for a, b in zip([*found, *mine[:5]], [*wanted, *theirs[:5]], strict=True))
    assert torch.equal(mine[3], arguments("cpu", training)[3]) is not training


def test_what_chooses_takes_what_the_operator_takes() -> None:
    for name, chooses in ON_CUDA.items():
        given = [a.name for a in operator(name)._schema.arguments]
        if name != NORM:
            assert [a.name for a in chooses._schema.arguments] == given  # type: ignore[attr-defined]
    impl = [a.name for a in torch.ops.aten._batch_norm_impl_index.default._schema.arguments]
    assert impl == [*[a.name for a in operator(NORM)._schema.arguments], "cudnn_enabled"]


@pytest.mark.gpu
@pytest.mark.parametrize("training", [True, False])
def test_a_replayed_batch_norm_is_the_module_s_bit_for_bit(training: bool) -> None:
    """Rounded otherwise, a deep network of batch norms of few values would give another answer."""
    x, weight, bias, mean, var, *options = arguments("cuda", training)
    step = Op(NORM, (*(TensorRef(i) for i in range(5)), *options), {}, (5, 6, 7))
    replay = Replay(Program((), (), (), {}, tuple(range(5)), (step,), TensorRef(5)), torch.device("cuda", 0), lambda *call: None)
    replay.init((), 0)
    mine = [t.clone() for t in (x, weight, bias, mean, var)]
    with torch.no_grad():
        found = replay.forward(mine, 0)
        wanted = torch.nn.functional.batch_norm(x, mean, var, weight, bias, *options)
    assert torch.equal(found, wanted) and torch.equal(mine[3], mean) and torch.equal(mine[4], var)
