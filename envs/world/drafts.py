"""A candidate as a value: task, schedule, mistakes, and how its kernels are used; and the answer that it is written into."""

from __future__ import annotations

from dataclasses import dataclass, replace

from envs.world.schedule import TORCH, Schedule, Stage
from envs.world.task import Task
from envs.world.write import module
from envs.world.write.module import Use, stage_names
from envs.world.write.text import Slip


@dataclass(frozen=True, slots=True)
class Draft:
    """One candidate of the teacher."""

    task: Task
    schedule: Schedule
    slips: tuple[Slip, ...] = ()
    use: Use = Use.LIVE

    @property
    def honest(self) -> bool:
        """Whether it has no mistake, and its kernels do the work that they claim to do."""
        return not self.slips and self.use is Use.LIVE and any(stage.form != TORCH for stage in self.schedule)

    def mended(self) -> Draft:
        """The same plan without mistakes."""
        return replace(self, slips=())


def plan(draft: Draft) -> str:
    """The plan in one line: what each kernel does and how, and what is left to torch.

    An example: `Plan: torch for matmul; row_whole for bias softmax, rows 1 warps 8.`
    """
    if draft.use is Use.NONE:
        return "Plan: torch for all."
    parts = "; ".join(_planned(draft.task, stage) for stage in draft.schedule)
    return f"Plan: {parts}." if draft.use is Use.LIVE else f"Plan: torch for all, beside {parts}."


def _planned(task: Task, stage: Stage) -> str:
    names = " ".join(stage_names(task, stage))
    knobs = " ".join(f"{name} {value}" for name, value in stage.knobs)
    return f"torch for {names}" if stage.form == TORCH else f"{stage.form} for {names}, {knobs}"


def code(draft: Draft) -> str:
    """The candidate's source."""
    return module.code(draft.task, draft.schedule, draft.slips, draft.use)


def completion(draft: Draft, remark: str = "") -> str:
    """The whole answer: remark, plan and fenced code."""
    opening = f"{remark}\n" if remark else ""
    return f"{opening}{plan(draft)}\n```python\n{code(draft)}```"
