"""A judge that says what it is told, and second looks with it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.cpu_judge import AtFull, Judged
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.messages.children import Extent
from rlkernel.evaluator.messages.oracle import Longer
from rlkernel.evaluator.second_looks.deciding import SecondLooks
from rlkernel.types import Evaluation, Problem, Status

CLOCK = Clock()
PROBLEM = Problem("p", 1, "train", "ROWS = 4096\nCOLS = 8192\nSMALL = {'ROWS': 16, 'COLS': 96}\n")
LOOP, AXIS = Extent(0, 1, 4, 3), Extent(0, 0, 4, 2)
LOOKS = (Longer("columns", {"COLS": 8192}, None), Longer("rows", {"ROWS": 4096}, "beside"))
WHOLE = Longer("ROWS = 4096\nCOLS = 8192\nSMALL = {'ROWS': 4096, 'COLS': 8192}\n", {"ROWS": 4096, "COLS": 8192}, None)


def failing(detail: str) -> Ended:
    """Kernels that ran and failed."""
    end = Ended(Status.RUNTIME_ERROR, detail)
    end.ran = True
    return end


RACE = failing("a race")


def judged(status: Status = Status.CORRECT, *short: Extent, same_work: bool = True) -> Judged:
    return Judged(Evaluation(status, "", matches=status is not Status.INCORRECT), same_work, frozenset(short))


HELD = replace(judged(Status.IMPLAUSIBLE), limited=True)


class Judge:
    """Says what it is told to say of each source, `shorter` of sources that a look makes itself, and remembers which it was asked
    for."""

    def __init__(self, shorter: Judged | None = None, **says: Judged | Exception) -> None:
        self.says, self.shorter = says, shorter
        self.asked: list[str] = []

    async def judge(self, oracle: Any, problem: Problem, *rest: Any, doubted: bool = False) -> Judged:
        made = self.shorter is not None and problem.source not in self.says
        self.asked.append("shorter" if made else problem.source)
        found = self.says.get(problem.source, self.shorter)
        assert found is not None
        if isinstance(found, Exception):
            raise found
        return found


async def after(
    judge: Judge,
    found: Judged | Ended,
    code: str = "",
    searched: list[int | None] | None = None,
    looks: tuple[Longer, ...] = LOOKS,
    traced: list[str] | None = None,
    counts: bool = False,
    varied: tuple[Longer, ...] = (Longer("other", {"ROWS": 8, "COLS": 48}, None),),
    hiding: tuple[str, ...] = (),
    wide: tuple[str, ...] = (),
    crowded: tuple[Longer, ...] = (),
) -> Any:
    """`searched`: how often longer sizes are halved at least, of those that were searched for. `traced`: where forward was traced
    alone; None where it fails there. `hiding`: the sources of which places are told apart at full shape alone; `wide`: those
    whose sums of whole numbers need more bits there; `crowded`: sizes at which one is as at full shape, too."""

    async def lengthened(
        oracle: Any, problem: Problem, halvings: int | None = 0, *, heads_pay: bool = False
    ) -> tuple[Longer, ...]:  # fmt: skip
        if searched is not None:
            searched.append(halvings)
        return looks

    async def other_values(oracle: Any, problem: Problem, *, whole: bool = False) -> tuple[Longer, ...]:
        return crowded if whole else varied

    async def brief(oracle: Any, problem: Problem) -> Any:
        hides, sizes = problem.source in hiding, ("small", "full")
        return SimpleNamespace(variants=sizes, counterparts=(), distances=hides, widths=problem.source in wide, counts=counts)

    async def trace(code: str, variants: tuple[str, ...], *rest: Any) -> Any:
        if traced is None:
            raise Ended(Status.RUNTIME_ERROR, "in forward")
        traced.extend(variants)
        return SimpleNamespace(traces=(SimpleNamespace(program=SimpleNamespace(launches=())),), timed=None), ()

    config = SimpleNamespace(limits=SimpleNamespace(run_seconds=120))
    stages = SimpleNamespace(config=config, lengthened=lengthened, varied=other_values, brief=brief, trace=trace)
    looks_again = SecondLooks(stages, judge)  # type: ignore[arg-type]
    return await looks_again.after(SimpleNamespace(), PROBLEM, code, CLOCK, found, AtFull())  # type: ignore[arg-type]
