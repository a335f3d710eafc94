"""What stands at smaller sizes for the numbers of the full shape."""

from __future__ import annotations

from rlkernel.evaluator.judging.sizes.counterparts import Made, counterparts


def test_axes_come_before_their_products_and_those_before_what_lies_near() -> None:
    found = counterparts({"N": [96, 12]}, [((4, 8192), (2, 64)), ((4, 3, 130), (2, 3, 18))])
    assert found[8192] == (64,)
    assert found[4 * 8192] == (128,)
    assert found[3 * 130] == (54,)
    assert (found[96], found[131], found[132]) == ((12,), (19,), (20,))


def test_numbers_that_would_be_the_same_stand_for_the_first_of_them_or_for_none() -> None:
    """Who divides a sum of 4096 by 16384, or by 32768, is wrong, and would be right where both are 64."""
    found = counterparts({}, [((16384, 4096), (64, 64))])
    assert (found[16384], found[4096]) == ((16384,), (4096,))
    found = counterparts({}, [((16384, 4096), (32, 64))])
    assert (found[16384], found[4096], found[32768]) == ((32,), (64,), (32768,))
    assert counterparts({}, [((4096, 64), (64, 64))])[4096] == (4096,)


def test_extents_of_blocks_are_no_parts_of_sizes() -> None:
    found = counterparts({}, [((1024,), (128,))])
    assert 64 not in found and 128 not in found and 2048 not in found
    assert found[1023] == (127,)


def test_a_number_that_may_be_made_of_several_sizes_is_as_it_is() -> None:
    assert Made({1024: (64,), 32: (8,)}).of(1 / 32) == ()
    assert Made({1024: (64,), 48: (8,)}).of(1 / 32) == (0.125,)
