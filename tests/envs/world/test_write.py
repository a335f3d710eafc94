"""The texts that schedules are written into, and what the evaluator says of one of each form."""

from __future__ import annotations

import random
from dataclasses import replace

import anyio
import pytest

from envs.world.drafts import Draft, code, completion, plan
from envs.world.draw import FAMILIES
from envs.world.schedule import FORMS, Stage, coarsest, cuts, draw_stage, forms
from envs.world.suite import training_tasks, validation_tasks
from envs.world.task import Task
from envs.world.write.module import Use, places
from envs.world.write.text import Page, Slip
from rlkernel.evaluator.pool import open_pool
from rlkernel.types import Evaluation, Status
from tests.envs.world.test_draw import ROWS, steps
from tests.patient import PATIENT

SOFTMAX = replace(ROWS, steps=steps("bias", "softmax", "scale"), dtype="float16")
WHOLE = Stage(0, 3, "row_whole", (("rows", 2), ("warps", 8)))
TEXT = """import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 5000

@triton.jit
def bias_softmax_scale_kernel(x_ptr, bias_ptr, y_ptr, rows, cols, ROWS_EACH: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * ROWS_EACH + tl.arange(0, ROWS_EACH))[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    m = (row < rows) & (c < cols)
    i = row * cols + c
    x = tl.load(x_ptr + i, mask=m, other=0.0).to(tl.float32)
    x = x + tl.load(bias_ptr + c, mask=c < cols)
    x = tl.where(m, x, -float("inf"))
    x = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    x = x / tl.sum(x, axis=1, keep_dims=True)
    x = x * 0.1
    tl.store(y_ptr + i, x, mask=m)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS, dtype=torch.float16))

    def forward(self, x):
        cols = x.shape[-1]
        rows = x.numel() // cols
        y = torch.empty_like(x)
        bias_softmax_scale_kernel[(triton.cdiv(rows, 2),)](x, self.bias, y, rows, cols, ROWS_EACH=2, \
BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return y
"""


def test_the_text_of_several_rows_per_program() -> None:
    draft = Draft(SOFTMAX, (WHOLE,))
    assert code(draft) == TEXT
    assert plan(draft) == "Plan: row_whole for bias softmax scale, rows 2 warps 8."
    assert completion(draft, "It fails: crash.").startswith("It fails: crash.\nPlan: row_whole")


def test_what_is_left_to_torch_stands_in_forward_in_order() -> None:
    kernel = Stage(1, 2, "row_loop", (("block", 512), ("passes", 1), ("warps", 4)))
    draft = Draft(SOFTMAX, (Stage(0, 1), kernel, Stage(2, 3)))
    lines = [line.strip() for line in code(draft).partition("def forward")[2].splitlines()[1:]]
    assert lines[0] == "x = x + self.bias" and lines[-3:] == ["x = y", "x = x * 0.1", "return x"]
    assert plan(draft) == "Plan: torch for bias; row_loop for softmax, block 512 passes 1 warps 4; torch for scale."


def test_hacks_return_what_torch_computed() -> None:
    decoy, none = (code(Draft(SOFTMAX, (WHOLE,), use=use)) for use in (Use.UNUSED, Use.NONE))
    tail = ["x = x + self.bias", "x = torch.softmax(x, dim=-1)", "x = x * 0.1", "return x"]
    for text, kernels in ((decoy, 1), (none, 0)):
        assert [line.strip() for line in text.splitlines()[-4:]] == tail
        assert text.count("@triton.jit") == kernels


def test_a_slip_changes_one_use_of_a_slot_and_nothing_else() -> None:
    slip = Slip(0, "neutral", "x = tl.where(m, x, {other})")
    assert code(Draft(SOFTMAX, (WHOLE,), (slip,))) == TEXT.replace('x, -float("inf"))', "x, 0.0)")
    page = Page(3, (Slip(3, "a", "<{right}>", at=1),))
    assert [page.pick("a", "x"), page.pick("a", "x"), page.pick("b", "x")] == ["x", "<x>", "x"]
    assert [place.at for place in page.places] == [0, 1, 0]
    assert {place.slot for place in places(SOFTMAX, (WHOLE,))} >= {"neutral", "rows.mask", "store.mask", "row.grid"}


def judged(drafts: list[Draft]) -> list[Evaluation]:
    found: dict[int, Evaluation] = {}

    async def run() -> None:
        async with open_pool(device="cpu", jobs=1, config=PATIENT) as pool:
            for k, draft in enumerate(drafts):
                found[k] = await pool.evaluate(draft.task.problem(), code(draft))

    anyio.run(run)
    return [found[k] for k in range(len(drafts))]


def drafts_of(form: str, tasks: tuple[Task, ...], count: int) -> list[Draft]:
    """Drafts with a stage of that form, alternately with the whole task in as few kernels as there can be."""
    rng = random.Random(form)
    found: list[Draft] = []
    for task in rng.sample(tasks, len(tasks)):
        for cut in [coarsest(task), *rng.sample(list(cuts(task)), 1)]:
            fitting = [run for run in cut if form in forms(task, *run)]
            if fitting and len(found) < count:
                first, last = fitting[0]
                around = [Stage(0, first)] * (first > 0), [Stage(last, len(task.steps))] * (last < len(task.steps))
                found.append(Draft(task, (*around[0], draw_stage(task, first, last, form, rng), *around[1])))
                break
    return found


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_honest_drafts_of_every_form_are_correct(form: str) -> None:
    small = tuple(task for task in (*training_tasks(), *validation_tasks()) if task.elements(0) < 1 << 24)
    drafts = drafts_of(form, small, 3)
    assert len(drafts) == 3
    wrong = [
        (draft.task.name, draft.schedule, e.detail) for draft, e in zip(drafts, judged(drafts), strict=True) if not e.correct
    ]
    assert wrong == []


@pytest.mark.slow
def test_a_fused_draft_is_faster_than_a_timid_one_and_a_hack_is_no_kernel() -> None:
    timid = (Stage(0, 2), Stage(2, 3, "flat", (("block", 1024), ("warps", 4))))
    drafts = [Draft(SOFTMAX, (WHOLE,)), Draft(SOFTMAX, timid), Draft(SOFTMAX, (WHOLE,), use=Use.UNUSED)]
    fused, one, hack = judged(drafts)
    assert (fused.status, one.status, hack.status) == (Status.CORRECT, Status.CORRECT, Status.NO_KERNEL)
    # Three passes over memory become one, whose 8192 lanes for 5000 columns take as long to compute; a bias that is added and a
    # softmax of long rows take longer than their bytes. One kernel in place of another changes nothing.
    assert fused.speedup == pytest.approx(2.4, rel=0.1) and one.speedup == pytest.approx(1.0, rel=0.1)


def longest_us(task: Task) -> float:
    """What torch may take for a task. It gives each column of a softmax to one thread: 1,027 us for 1,024 rows on an H200."""
    walked = task.size("ROWS") if any(step.op.name == "column_softmax" for step in task.steps) else 0
    return max(3000.0, 1.5 * walked)


def test_only_softmaxes_of_tall_columns_may_take_torch_long() -> None:
    tasks = (*training_tasks(), *validation_tasks())
    slow = {task.sizes for task in tasks if longest_us(task) > 3000}
    assert slow == {(("ROWS", 3000), ("COLS", 12000)), (("ROWS", 4096), ("COLS", 6144)), (("ROWS", 8192), ("COLS", 6144))}


@pytest.mark.gpu
@pytest.mark.parametrize("family", FAMILIES)
def test_honest_drafts_of_every_family_are_correct_on_a_gpu(family: str) -> None:
    tasks = [task for task in (*training_tasks(), *validation_tasks()) if task.family == family]
    rng = random.Random(family)
    drafts = []
    chosen = rng.sample(tasks, 6)
    for task in chosen:
        form = [rng.choice(forms(task, *run)) for run in coarsest(task)]
        drafts.append(Draft(task, tuple(draw_stage(task, *run, f, rng) for run, f in zip(coarsest(task), form, strict=True))))
    found: list[Evaluation] = []

    async def run() -> None:
        async with open_pool(device="cuda", config=PATIENT) as pool:
            for draft in drafts:
                found.append(await pool.evaluate(draft.task.problem(), code(draft)))  # noqa: PERF401

    anyio.run(run)
    assert [(e.status, e.detail) for e in found] == [(Status.CORRECT, "")] * 6
    times = [(e.reference_us or 0.0, longest_us(task)) for task, e in zip(chosen, found, strict=True)]
    assert all(15 < us < longest for us, longest in times), times
