"""The honest candidates that mutants are made of, every mutant of one, and a draw of them from a seed."""

from __future__ import annotations

import ast
import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest

from benchmarks.corpus import Case
from benchmarks.mutants.kinds import KINDS, Place
from envs.world.drafts import code
from envs.world.suite import training_tasks
from envs.world.teacher import BEGINNER, first_draft
from envs.world.write.module import Use
from rlkernel.reference_text import replace_spans
from rlkernel.types import Status
from tests.red_team import cases as red_team


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one honest candidate."""

    of: Case
    kind: str
    line: int
    before: str
    """The changed line of the candidate, without the blanks around it."""
    after: str
    code: str

    @property
    def name(self) -> str:
        return f"{self.of.name}:{self.line} {self.kind}"

    @property
    def digest(self) -> str:
        """16 hex digits for the problem, the candidate and its mutant, by which a stored verdict is found again."""
        return hashlib.sha256("\0".join((self.of.problem.source, self.of.code, self.code)).encode()).hexdigest()[:16]


def honest(device: str) -> list[Case]:
    """The red team's honest candidates that are correct whatever chance decides. device: cpu or gpu."""
    found = red_team.load("honest").values()
    return [Case(one.problem, one.name, one.code) for one in found if one.expected(device) == {Status.CORRECT}]


def draft_cases(seed: int) -> list[Case]:
    """A draft for each of the world's training tasks, without mistakes, its kernels in use. Those that leave all to torch are
    left out."""
    rng = random.Random(seed)
    found = []
    for task in training_tasks():
        draft = replace(first_draft(task, BEGINNER, rng), slips=(), use=Use.LIVE)
        if draft.honest:
            found.append(Case(task.problem(), task.name, code(draft)))
    return found


def mutants(case: Case) -> list[Mutant]:
    """Every mutant of a candidate, in the order of its text; of those with the same text the first. Some say the same in other
    words, see `tells`."""
    lines = case.code.splitlines()
    found: dict[str, Mutant] = {}
    for place, node in _changeable(ast.parse(case.code)):
        for one in KINDS.values():
            for new in one.change(node) if one.place == place else ():
                changed = replace_spans(case.code, [(node, new)])
                if changed in found:
                    continue
                line = node.lineno
                after = changed.splitlines()[line - 1].strip()
                found[changed] = Mutant(case, one.name, line, lines[line - 1].strip(), after, changed)
    return list(found.values())


def tells(mutant: Mutant) -> bool:
    """Whether a mutant is Python and says something else than its original."""
    try:
        return ast.dump(ast.parse(mutant.code)) != ast.dump(ast.parse(mutant.of.code))
    except SyntaxError:
        return False


def _changeable(node: ast.AST, place: Place | None = None) -> Iterator[tuple[Place, ast.expr | ast.stmt]]:
    """The statements and expressions in the bodies of functions, with the place in which each stands."""
    if isinstance(node, ast.JoinedStr):  # Python 3.11 does not know where its parts stand
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        jitted = any("jit" in ast.unparse(one) for one in node.decorator_list)
        for statement in node.body:
            yield from _changeable(statement, "kernel" if jitted else "host")
        return
    if place is not None and isinstance(node, ast.expr | ast.stmt):
        yield place, node
    for child in ast.iter_child_nodes(node):
        yield from _changeable(child, place)


def draw(cases: Sequence[Case], count: int, seed: int, part: str = "") -> list[Mutant]:
    """`count` different mutants, one of each kind in turn, so that rare kinds are there, too; fewer where there are fewer. A
    longer draw begins with the shorter one. part: of the names of kinds that are drawn."""
    rng = random.Random(seed)
    of: dict[str, list[Mutant]] = {name: [] for name in KINDS if part in name}
    for case in cases:
        for one in mutants(case):
            if one.kind in of:
                of[one.kind].append(one)
    for several in of.values():
        rng.shuffle(several)
    turns = chain.from_iterable(zip_longest(*of.values()))
    return list(islice((one for one in turns if one is not None and tells(one)), count))
