"""Stand-ins for what torch.compile's output asks of torch, beside torch's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlkernel.evaluator.trace import inductor

_DIMS = st.lists(st.integers(1, 3), min_size=1, max_size=3)


def _refuses(check: object, *args: object) -> bool:
    try:
        check(*args)  # type: ignore[operator]
    except AssertionError:
        return True
    return False


@settings(max_examples=200)
@given(shape=_DIMS, transposed=st.booleans(), wanted=_DIMS, strides=_DIMS)
def test_sizes_and_strides_are_refused_as_torch_refuses_them(
    shape: list[int], transposed: bool, wanted: list[int], strides: list[int]
) -> None:
    tensor = torch.empty(shape).T.contiguous().T if transposed and len(shape) == 2 else torch.empty(shape)
    for size, stride in ((wanted, strides), (shape, strides), (shape, list(tensor.stride()))):
        if len(size) == len(stride):
            own = _refuses(torch._C._dynamo.guards.assert_size_stride, tensor, tuple(size), tuple(stride))
            assert _refuses(inductor._assert_size_stride, tensor, size, stride) is own


def test_a_tensor_is_seen_at_an_offset_from_its_own() -> None:
    whole = torch.arange(12.0)
    guards: Any = torch._C._dynamo.guards  # torch's stubs lack this function
    own, theirs = (call(whole[2:], (2, 3), (3, 1), 1) for call in (inductor._reinterpreted, guards._reinterpret_tensor))
    assert own.tolist() == theirs.tolist() == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]


@pytest.mark.parametrize(("offset", "refused"), [(0, False), (1, True), (4, False)])
def test_alignment_counts_from_the_storage(offset: int, refused: bool) -> None:
    assert _refuses(inductor._assert_alignment, torch.empty(64)[offset:], 16) is refused
