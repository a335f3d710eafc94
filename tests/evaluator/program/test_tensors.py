"""What tensors look like to whoever judges them."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlkernel.evaluator.program.tensors import copy_of, extent, flatten, laid_as, lent, overlapping, overwrite


def test_what_lies_in_an_inputs_memory_is_lent() -> None:
    whole = torch.zeros(4, 6)
    assert lent(whole.t(), [whole]) and lent(whole[3, 5:], [torch.zeros(2), whole]) and lent(whole, [whole[0]])
    assert not lent(whole.clone(), [whole]) and not lent(whole[:0], [whole]) and not lent(whole, [])
    # Neighbours in one memory: rows 0 and 1 end where rows 2 and 3 begin.
    assert not lent(whole[:2], [whole[2:]])


@pytest.mark.parametrize(
    ("size", "stride", "expected"),
    [((2, 3), (3, 1), 6), ((2, 3), (10, 1), 13), ((3, 2), (1, 3), 6), ((4,), (0,), 1), ((0, 5), (5, 1), 0), ((), (), 1)],
)
def test_extent(size: tuple[int, ...], stride: tuple[int, ...], expected: int) -> None:
    assert extent(size, stride) == expected


AXES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=3)


@settings(max_examples=300, deadline=None)
@given(AXES)
def test_elements_that_share_memory_are_found_whatever_the_strides(axes: list[tuple[int, int]]) -> None:
    size, stride = [n for n, _ in axes], [s for _, s in axes]
    places = [sum(i * s for i, s in zip(place, stride, strict=True)) for place in product(*map(range, size))]
    strided = torch.empty(1000).as_strided(size, stride)
    assert overlapping(strided) or len(set(places)) == len(places)


def test_what_operators_make_shares_nothing_but_by_expand_and_unfold() -> None:
    x = torch.zeros(4, 6, 8)
    own = [x, x.mT, x[::2, :, ::3], x.permute(2, 0, 1), x[:, :1], x[:0], x[0, 0, 0], x.unfold(2, 2, 2)]
    own += [torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), x.unfold(2, 8, 1), x[:1].expand(1, 6, 8)]
    assert [overlapping(t) for t in own] == [False] * len(own)
    assert [overlapping(t) for t in (x[:1].expand(4, 6, 8), x.unfold(2, 2, 1), x.unfold(0, 3, 1))] == [True] * 3


def test_keys_of_an_output_that_are_no_strings_are_told_apart() -> None:
    found: list[torch.Tensor] = []
    assert flatten({"a": 1, 0: 2, ("a", 0): 3}, found) == {"dict": [["a", 1], ["int 0", 2], ["tuple ('a', 0)", 3]]}


def test_an_expanded_tensor_is_overwritten_where_it_lies() -> None:
    rows, whole = torch.zeros(3).expand(2, 3), torch.zeros(2, 3)
    for tensor in (rows, whole):
        overwrite(tensor, torch.arange(6.0).reshape(2, 3))
    assert rows.tolist() == [[0, 1, 2], [0, 1, 2]] and whole.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_what_is_computed_of_a_tensor_may_lie_as_it_does() -> None:
    x = torch.arange(96.0).reshape(8, 12)
    for tensor in (x[::2, 1::3], x[:, :1].expand(8, 12), x.reshape(-1).unfold(0, 8, 2), x.T, x, torch.ones(())):
        for found, wanted in ((laid_as(tensor * 2, tensor), tensor * 2), (copy_of(tensor), tensor)):
            assert found.stride() == tensor.stride() and torch.equal(found, wanted)
            assert not lent(found, [tensor])


def test_what_has_another_shape_keeps_its_own_layout() -> None:
    assert laid_as(torch.zeros(2, 3), torch.zeros(3, 2)).stride() == (3, 1)
