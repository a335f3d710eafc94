"""Ids of tensors: what a tensor is now, and what is made for one that was made behind the recorder's back."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.program.schema import Op, Step
from rlkernel.evaluator.program.values import TensorRef
from rlkernel.evaluator.trace.host_numbers import Untraceable
from rlkernel.evaluator.trace.identities import Identities


@pytest.fixture
def steps() -> list[Step]:
    return []


@pytest.fixture
def ids(steps: list[Step]) -> Identities:
    return Identities(steps.append)


def meta(*shape: int) -> torch.Tensor:
    return torch.empty(shape, device="meta")


def test_ids_count_from_zero_and_are_kept(ids: Identities, steps: list[Step]) -> None:
    x, y = meta(4), meta(2, 3)
    assert (ids.bind(x), ids.bind(y), len(ids)) == (0, 1, 2)
    assert (ids.of(y), ids.ref(x), ids.tensor(1) is y) == (1, TensorRef(0), True)
    assert steps == []


def test_a_view_without_an_id_is_a_step(ids: Identities, steps: list[Step]) -> None:
    x = meta(2, 3)
    ids.bind(x)
    row = x[1]
    assert ids.of(row) == 1 == ids.of(row)
    assert steps == [Op("aten.as_strided.default", (TensorRef(0), [3], [1], 3), {}, (1,))]
    assert ids.storage(0) == ids.storage(1)


def test_a_tensor_of_memory_that_nobody_has_seen_is_refused(ids: Identities) -> None:
    with pytest.raises(Untraceable, match="a way that the trace does not see"):
        ids.of(meta(4))


def test_what_becomes_another_tensor_has_another_id(ids: Identities) -> None:
    x, y = meta(4), meta(2)
    ids.bind(x)
    ids.bind(y)
    x.data = y
    assert ids.of(x) == 2 and ids.storage(2) == ids.storage(1)


def test_what_an_operator_changes_in_place_keeps_its_id(ids: Identities) -> None:
    x = meta(2, 3)
    ids.bind(x)
    x.t_()
    assert (ids.of_result(x), ids.of(x), ids.of_result(meta(1))) == (0, 0, 1)


def test_what_is_taken_back_is_forgotten(ids: Identities) -> None:
    x, made = meta(4), meta(4)
    ids.bind(x)
    ids.bind(made)
    assert ids.forget(1) == {ids.storage(1)}
    assert ids.of(x) == 0
    with pytest.raises(Untraceable):
        ids.of(made)


def test_what_was_captured_reads_the_input_of_the_call_in_progress(ids: Identities, steps: list[Step]) -> None:
    first, second = meta(4), meta(4)
    ids.begin([ids.bind(first)])
    half = first[:2]
    captured = ids.of(half)
    ids.begin([ids.bind(second)])
    assert ids.now(0) == 2
    assert ids.now(captured) == 3 and steps[-1] == Op("aten.as_strided.default", (TensorRef(2), [2], [1], 0), {}, (3,))
