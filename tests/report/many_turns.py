"""Run directories with as many turns as a test wants: candidates of realistic size, no two of them the same."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from rlkernel.types import Evaluation, LaunchFact, OpFact, Status

HERE = Path(__file__).parents[1]
EVIL = (
    "</script></pre><script>document.title = 'broken'</script><img src=x onerror=\"document.title = 'broken'\"> ]]> <!-- \u2028"
)
"""What a candidate may write to be markup."""
STATUSES = [*[Status.CORRECT] * 6, *Status]
TURNS = 3


def write_run(directory: Path, arm: str, seed: int, trajectories: int, evil: bool = False) -> Path:
    """A run of TURNS turns per trajectory. evil: the first trajectory consists of EVIL."""
    chance = random.Random(f"{arm} {seed}")
    directory.mkdir(parents=True)
    run = {"class": "Run", "name": arm, "seed": seed, "steps": 20, "advantage": {"class": arm.upper()}}
    (directory / "manifest.json").write_text(json.dumps({"arm": arm, "seed": seed, "timing": "measured", "run": run}))
    keys = ("reward", "fast_1", "fast_1.2", "fast_1_turn_1", "fast_1.2_turn_1", "hacking_rate", "lazy_rate")
    rows = [{"step": step, "split": "validation", **{key: chance.random() for key in keys}} for step in (0, 10, 20)]
    # Its own chance, so that the trajectories stay what they are.
    steps = random.Random(f"{arm} {seed} steps")
    numbers = ("loss", "entropy", "grad_norm", "mismatch", "reward_std", "frac_reward_zero_std")
    rows += [{"step": step, "split": "train", **{key: steps.random() for key in numbers}} for step in range(1, 21)]
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    references = sorted((HERE.parent / "envs" / "suite").glob("level*/*.py"))
    candidates = [path.read_text() for path in sorted((HERE / "red_team" / "honest").glob("*.py"))]
    candidates = [text for text in candidates if "NaN" not in text]  # a page that says it has lost a number
    with (directory / "transcripts.jsonl").open("w") as file:
        for i in range(trajectories):
            reference = references[chance.randrange(len(references))]
            name = f"{reference.parent.name}/{reference.stem}"
            row = _trajectory(name, reference.read_text(), candidates, chance)
            if evil and i == 0:
                row = _evil(row)
            split, step = ("validation", 10 * (i % 3)) if i % 2 else ("train", i * 20 // trajectories)
            file.write(json.dumps({"split": split, "step": step, **row}) + "\n")
    problems = {f"{path.parent.name}/{path.stem}": {key: chance.random() for key in keys} for path in references[:12]}
    (directory / "outcomes.jsonl").write_text(json.dumps({"split": "validation", "step": 20, "problems": problems}) + "\n")
    return directory


def verdict(status: str, speedup: float | None = None) -> dict[str, Any]:
    """An evaluation as a transcript has it."""
    timing = None if speedup is None else "measured"
    return Evaluation(Status(status), "", speedup=speedup, timing=timing, coverage=speedup and 1.0).to_json()  # type: ignore[arg-type]


def _trajectory(problem: str, source: str, candidates: list[str], chance: random.Random) -> dict[str, Any]:
    prompt = f"Rewrite this Model as ModelNew with Triton kernels.\n```python\n{source}\n```\n"
    turns, code = [], chance.choice(candidates)
    for _ in range(TURNS):
        code = _edited(code, chance)
        facts = _facts(chance)
        plan = f"Plan: {' '.join(chance.choices(code.split(), k=60))}."
        turns.append(
            {
                "completion": f"{plan}\n```python\n{code}```\nThat is {chance.random():.6f} better.",
                "stop": "stop",
                "code": None if facts.status is Status.NO_CODE else code,
                "evaluation": facts.to_json(),
                "reward": round(chance.random() * 2, 6),
                "feedback": f"status: {facts.status}\nspeedup: {facts.speedup}\nsteps: fused {chance.random():.4f}",
            }
        )
    return {"problem": problem, "prompt": prompt, "turns": turns}


def _edited(code: str, chance: random.Random) -> str:
    """A few lines another way, so that the texts of two turns differ."""
    lines = code.splitlines()
    for _ in range(6):
        at = chance.randrange(len(lines))
        lines[at : at + 1] = [f"{lines[at]}  # {chance.getrandbits(64):x}"]
    lines.insert(chance.randrange(len(lines)), f"    block_{chance.getrandbits(32):x} = {chance.getrandbits(20)}")
    return "\n".join(lines) + "\n"


def _facts(chance: random.Random) -> Evaluation:
    status = chance.choice(STATUSES)
    if status is not Status.CORRECT:
        return Evaluation(status, f"the outputs differ at {chance.getrandbits(24)}")
    speedup, share = chance.uniform(0.2, 4.0), chance.random()
    us = chance.uniform(10, 500)
    return Evaluation(
        status, "", True, speedup, speedup * 0.99, speedup * 1.01, us * speedup, us, "measured", coverage=share,
        launches=(LaunchFact("fused", 1, us * share, share, True, registers=32),),
        ops=(OpFact("aten.mm", 2, us * (1 - share), 1 - share),),
        max_error=chance.random() * 1e-6, reference_ops=(OpFact("aten.mm", 2, us, 0.7), OpFact("aten.gelu", 1, us, 0.3)),
    )  # fmt: skip


def _evil(row: dict[str, Any]) -> dict[str, Any]:
    """All that a model can write, and the problem's name."""
    facts = Evaluation(Status.INCORRECT, EVIL, launches=(LaunchFact(EVIL, 1, 1.0, 1.0, True),)).to_json()
    codes = [f"x = 1\n{EVIL}\n", f"x = 2\n{EVIL}\n{EVIL}\n", f"{EVIL}\n"]
    turns = [
        {**turn, "completion": f"{EVIL}\n```python\n{code}```\n{EVIL}", "code": code, "evaluation": facts, "feedback": EVIL}
        for turn, code in zip(row["turns"], codes, strict=True)
    ]
    return {"problem": f"level1/{EVIL}", "prompt": EVIL, "turns": turns}
