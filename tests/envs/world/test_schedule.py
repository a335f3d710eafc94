from __future__ import annotations

import random
from collections import Counter

import pytest

from envs.world.schedule import (
    FORMS,
    TORCH,
    Stage,
    coarsest,
    cuts,
    draw,
    draw_stage,
    forms,
    needs_tf32,
    power_of_2,
    sound,
    usual,
)
from envs.world.suite import training_tasks, validation_tasks
from envs.world.task import Task
from tests.envs.world.test_draw import ROWS, steps


def task(*names: str, **changes: object) -> Task:
    return Task("row", steps(*names), ROWS.sizes, ROWS.small, **changes)  # type: ignore[arg-type]


PRODUCT = Task(
    "product", steps("relu", "matmul", "bias", "softmax"),
    (("M", 512), ("K", 512), ("N", 200)), (("M", 40), ("K", 136), ("N", 40)),
)  # fmt: skip


def test_the_cuts_of_a_row_task_and_their_forms() -> None:
    one = task("bias", "softmax", "scale")
    assert list(cuts(one)) == [((0, 3),), ((0, 2), (2, 3)), ((0, 1), (1, 3)), ((0, 1), (1, 2), (2, 3))]
    assert forms(one, 0, 3) == ("row_whole", "row_loop")
    assert forms(one, 0, 1) == ("flat",)
    assert coarsest(one) == ((0, 3),)


def test_a_row_operator_joins_a_product_where_a_tile_holds_whole_rows() -> None:
    assert forms(PRODUCT, 0, 4) == ("product_row",)
    assert forms(PRODUCT, 0, 3) == ("product", "product_split")
    wide = Task("product", PRODUCT.steps, (("M", 512), ("K", 512), ("N", 512)), PRODUCT.small)
    assert forms(wide, 0, 4) == () and coarsest(wide) == ((0, 3), (3, 4))


def test_operands_are_not_applied_to_the_tiles_of_a_product_before_it() -> None:
    assert forms(Task("product", steps("bias", "matmul"), PRODUCT.sizes, PRODUCT.small), 0, 2) == ()


@pytest.mark.parametrize(
    ("stage", "right"),
    [
        (Stage(0, 1, "flat", (("block", 8192), ("warps", 4))), True),  # 64 elements per thread
        (Stage(0, 1, "flat", (("block", 8192), ("warps", 1))), False),  # 256
        (Stage(0, 1, "flat", (("block", 256), ("warps", 16))), False),  # half an element
        (Stage(1, 2, "row_whole", (("rows", 2), ("warps", 8))), True),  # 2 * 8192 elements, 64 per thread
        (Stage(1, 2, "row_whole", (("rows", 8), ("warps", 16))), False),  # 65536 elements
    ],
)
def test_tiles_must_fit_their_threads(stage: Stage, right: bool) -> None:
    assert sound(task("bias", "softmax"), stage) is right


def test_a_pipeline_must_fit_into_shared_memory() -> None:
    knobs = {"bm": 128, "bn": 128, "bk": 64, "warps": 8, "stages": 4, "group": 8, "precision": "tf32x3"}
    stage = Stage(0, 3, "product", tuple(knobs.items()))
    # (128 + 128) * 64 * 4 bytes * 4 stages are 262144 bytes; three stages are 196608.
    assert not sound(PRODUCT, stage) and sound(PRODUCT, stage.turned("stages", 3))


def test_three_products_of_tf32_keep_both_halves_of_the_right_operand() -> None:
    knobs = {"bm": 64, "bn": 256, "bk": 128, "warps": 8, "stages": 1, "group": 8, "precision": "tf32x3"}
    stage = Stage(0, 3, "product", tuple(knobs.items()))
    # One stage is (64 + 256) * 128 * 4 = 163840 bytes, and two halves of 256 * 128 numbers are 262144: an H200 refused it.
    assert not sound(PRODUCT, stage)
    assert sound(PRODUCT, stage.turned("precision", "tf32")) and sound(PRODUCT, stage.turned("bk", 64))


def test_no_chunk_of_a_split_is_empty() -> None:
    few = Task("fold", steps("sum"), (("ROWS", 16), ("COLS", 70000)), (("ROWS", 3), ("COLS", 33)))
    knobs = {"block": 1024, "passes": 1, "splits": 32, "warps": 4}
    stage = Stage(0, 1, "row_split", tuple(knobs.items()))
    # 33 columns in 32 chunks of 2 are used up after 17; in 4 chunks of 9, the last one has 6.
    assert not sound(few, stage) and sound(few, stage.turned("splits", 4))


def test_everything_that_is_drawn_is_sound_and_every_form_and_knob_is_drawn() -> None:
    rng, seen = random.Random(0), Counter[str]()
    for one in (*training_tasks()[::4], *validation_tasks()[::2]):
        for cut in list(cuts(one))[:2]:
            schedule = draw(one, rng, cut, torch_share=0.1)
            assert all(sound(one, stage) for stage in schedule)
            assert [stage.first for stage in schedule[1:]] == [stage.last for stage in schedule[:-1]]
            seen.update(stage.form for stage in schedule)
        for first, last in coarsest(one):
            assert all(sound(one, usual(one, first, last, form)) for form in forms(one, first, last))
    assert set(seen) == {TORCH, *FORMS}


def test_tf32_is_not_drawn_where_products_are_to_be_exact() -> None:
    rng = random.Random(0)
    plain = [draw_stage(PRODUCT, 0, 3, "product", rng, tf32=False) for _ in range(60)]
    asked = [draw_stage(PRODUCT, 0, 3, "product", rng) for _ in range(60)]
    assert not any(needs_tf32((stage,)) for stage in plain) and any(needs_tf32((stage,)) for stage in asked)
    assert {stage.precision for stage in plain} == {"ieee", "tf32x3"}


def test_power_of_2() -> None:
    assert [power_of_2(n) for n in (1, 2, 3, 1000, 1024)] == [1, 2, 4, 1024, 1024]
