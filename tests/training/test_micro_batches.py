"""Which rows go through the model together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlkernel.training.micro_batches import micro_batches


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(0, 100))
def test_every_row_is_in_one_micro_batch_that_keeps_to_the_budget(lengths: list[int], budget: int) -> None:
    found = micro_batches(lengths, budget)
    assert sorted(row for rows in found for row in rows) == list(range(len(lengths)))
    sums = [sum(lengths[row] for row in rows) for rows in found]
    assert all(rows and (total <= budget or len(rows) == 1) for rows, total in zip(found, sums, strict=True))
    # What does not fit fails at once.
    assert max(lengths) == lengths[found[0][0]]
    # Even: two differ by one row at most.
    assert max(sums) - min(sums) <= max(lengths)


def test_rows_of_one_length_fill_as_few_micro_batches_as_there_can_be() -> None:
    # 12 rows of 100 tokens at 512: 5 rows at a time, so 3 micro-batches, of 4 rows each.
    assert [len(rows) for rows in micro_batches([100] * 12, 512)] == [4, 4, 4]
