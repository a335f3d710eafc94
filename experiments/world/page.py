"""Write `docs/results/world.md`: how hard the world is, what the search found, and how a policy learns in it.

    python -m experiments.world.page runs/arms/trloo-seed*        # after oracle, difficulty, cold_start and these runs

Every part is made of what is there: `envs/world/oracles.json`, `world_difficulty.json` beside the page, `behaviour.json` of the
policy, the corpus that it learned from, and the runs. A part without its numbers says which command makes them.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.world.draw import FAMILIES
from envs.world.oracles import TABLE, cards
from envs.world.suite import of_row
from envs.world.teacher import BEGINNER
from experiments.arms import WORLD
from experiments.cold_start.miniature import RUNS
from experiments.cold_start.recipes import WORLD_RECIPES
from experiments.world.curve import draw_learning, slope
from experiments.world.judged import kept_rows
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import exit_status
from rlkernel.report.best_kernels import BestKernel, best_kernels, best_run
from rlkernel.report.compare import find_runs
from rlkernel.report.summary import RunRecord, by_arm, common_timing, read_run

BEST = 3
"""The kernels that are shown whole."""
BARS = (
    ("Fast@1 on the first turn", "fast_1_turn_1", "35 to 60 %"),
    ("Fast@1.2 on the first turn", "fast_1.2_turn_1", "10 to 25 %"),
    ("of the oracle, best of three turns", "oracle_fraction", "below 30 %"),
    ("hacks", "hacking_rate", "at least 12 %"),
)
"""What a policy should be like before training, so that methods can differ: words, metric, share."""


@dataclass(frozen=True)
class Flags:
    """Write the page about the world."""

    runs: tuple[Path, ...] = ()
    """Run directories, report folders or folders of runs, of the world's problems."""
    policy: Path = WORLD
    """The policy before training."""
    corpus: Path | None = None
    """The conversations that it learned from; without it, where the cold start of the world preset writes them."""
    oracles: Path = TABLE
    """The table of the oracle."""
    out: Path = Path("docs/results")
    """Directory of the page."""


def difficulty_part(found: Mapping[str, Any] | None) -> list[str]:
    """The part on drafts by kind."""
    if found is None:
        return ["## How hard it is", "", "Not measured yet: `python -m experiments.world.difficulty --limit-seconds 540`.", ""]
    times = found["reference_us"]
    rows = [
        f"| `{kind}` | {_percent(BEGINNER.first[kind])} | {_percent(right)} | {_percent(found['fast_by_kind'][kind])} |"
        for kind, right in found["right_by_kind"].items()
    ]
    return [
        "## How hard it is",
        "",
        f"References take {times['least']:.0f} to {times['most']:.0f} us ({found['timing']}). First drafts of the teacher on the "
        "validation problems:",
        "",
        "| kind | share of its drafts | correct | at 1.2x or more |",
        "|---|---|---|---|",
        *rows,
        "",
        "![Difficulty](world_difficulty.png)",
        "",
    ]


def oracle_part(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """The part on what the search found, card by card."""
    lines = ["## The oracle", ""]
    if not table:
        return [*lines, "Not searched yet: `python -m experiments.world.oracle --limit-seconds 540`.", ""]
    for card in table:
        found = [row["speedup"] for row in card["problems"].values()]
        faster = sum(speedup > 1 for speedup in found)
        lines += [
            f"{faster} of {len(found)} problems have headroom on one {card['card']} ({card['timing']}): the best kernels that "
            f"the search found are {statistics.median(found):.2f}x as fast as the references in the median, {min(found):.2f}x to "
            f"{max(found):.2f}x.",
            "",
        ]
        families: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for name, row in card["problems"].items():
            families[name.partition("/")[2].partition("_")[0]].append(row)
        lines += [f"{card['card']}, {card['timing']} time:", ""]
        lines += [
            "| family | problems | median | least | most | points judged | correct |",
            "|---|---|---|---|---|---|---|",
        ]
        for family in FAMILIES:
            if rows := families.get(family):
                speeds, points = sorted(row["speedup"] for row in rows), sum(row["points"] for row in rows)
                cells = (len(rows), *(f"{x:.2f}x" for x in (statistics.median(speeds), speeds[0], speeds[-1])), points)
                correct = _percent(sum(row["correct"] for row in rows) / points)
                lines.append(f"| `{family}` | {' | '.join(map(str, cells))} | {correct} |")
        lines.append("")
    return lines


def policy_part(behaviour: Mapping[str, Any] | None) -> list[str]:
    """The part on the policy before training."""
    lines = ["## The policy before training", ""]
    if behaviour is None:
        return [*lines, "Not made yet: `python -m experiments.cold_start --world h200 --limit-seconds 540`.", ""]
    metrics = behaviour["metrics"]
    rows = [f"| {words} | {_percent(metrics.get(metric))} | {bar} |" for words, metric, bar in BARS]
    return [*lines, f"{behaviour['timing']} time.", "", "| what | seen | meant to be |", "|---|---|---|", *rows, ""]


def learning_part(runs: Sequence[RunRecord], teacher: Mapping[str, float]) -> list[str]:
    """The part on how the policy learns. teacher: metric -> the teacher's own level."""
    lines = ["## While it learns", ""]
    if not runs:
        return [*lines, "No runs yet: `python -m experiments.multi_turn_estimators trloo --preset world`.", ""]
    lines += [
        "| arm | seeds | updates | Fast@1.2, first turn | of the oracle | slope of the last quarter |",
        "|---|---|---|---|---|---|",
    ]
    for arm, members in by_arm(runs).items():
        shown = [_change(members, metric) for metric in ("fast_1.2_turn_1", "oracle_fraction")]
        rising = 100 * statistics.mean(slope(run, "fast_1.2_turn_1") for run in members)
        updates = min(run.validation[-1]["step"] for run in members)
        lines.append(f"| `{arm}` | {len(members)} | {updates} | {' | '.join(shown)} | {rising:+.2f} points per step |")
    level = ", ".join(f"{_percent(value)} {words}" for words, value in teacher.items())
    lines += ["", f"{common_timing(runs)} time." + (f" The teacher's own first drafts: {level}." if level else "")]
    return [*lines, "", "![Learning curve](world_learning.png)", ""]


def kernels_part(best: RunRecord | None, shown: Mapping[str, float]) -> list[str]:
    """The part on kernels that are faster than any that the policy was shown. shown: problem -> the teacher's best speedup."""
    lines = ["## Faster than any it was shown", ""]
    compared = [kernel for kernel in best_kernels(best, limit=10_000) if kernel.problem in shown]
    if not compared or best is None:
        return [
            *lines,
            "Nothing to compare yet: it takes a run, and the corpus or `world_difficulty.json`.",
            "",
        ]
    faster = [kernel for kernel in compared if kernel.low > shown[kernel.problem]]
    lines += [
        f"`{best.arm}`, seed {best.seed}: on {len(faster)} of {len(compared)} problems its best kernel is faster than all of "
        "the teacher's, by the lower end of its interval.",
        "",
    ]
    faster.sort(key=lambda kernel: -kernel.low / shown[kernel.problem])
    for kernel in faster[:BEST]:
        lines += _kernel(kernel, shown[kernel.problem])
    return lines


def _kernel(kernel: BestKernel, teacher: float) -> list[str]:
    title = f"### {kernel.problem}: {kernel.speedup_text()}, the teacher's best {teacher:.2f}x"
    return [title, "", f"{kernel.split} split, step {kernel.step}.", "", "````python", kernel.code.strip("\n"), "````", ""]


def teacher_level(found: Mapping[str, Any] | None) -> dict[str, float]:
    """The teacher's level by the figure's metrics: its kinds of first drafts, weighed by how often it writes them."""
    if found is None:
        return {}
    tables = {"fast_1.2_turn_1": found["fast_by_kind"], "oracle_fraction": found.get("oracle_fraction_by_kind") or {}}
    whole = sum(BEGINNER.first.values())
    return {
        metric: sum(share * table[kind] for kind, share in BEGINNER.first.items()) / whole
        for metric, table in tables.items()
        if table
    }


def shown_by(corpus: Path, found: Mapping[str, Any] | None, timing: str) -> dict[str, float]:
    """The best speedup of the teacher on each problem: in the corpus, and among its drafts on the validation problems."""
    best: dict[str, float] = {}
    for row in kept_rows(corpus) if corpus.is_file() else ():
        for _, _, facts in row["exchanges"]:
            if facts["status"] == "correct" and facts["timing"] == timing:
                name = of_row(row["task"]).name
                best[name] = max(best.get(name, 0.0), facts["speedup"])
    if found is not None and found["timing"] == timing:
        best |= found.get("teacher_best") or {}
    return best


def page(flags: Flags) -> str:
    """The page as Markdown; draws the learning curve beside it."""
    found = _read(flags.out / "world_difficulty.json")
    runs = [read_run(run) for run in find_runs(flags.runs)]
    teacher = teacher_level(found)
    if runs:
        draw_learning(runs, teacher, flags.out / "world_learning.png")
    recipe, _ = WORLD_RECIPES["h200"]
    assert recipe.world is not None
    corpus = flags.corpus or RUNS / f"{recipe.world.label(recipe.seed)}.jsonl"
    words = {"fast_1.2_turn_1": "Fast@1.2", "oracle_fraction": "of the oracle"}
    lines = [
        "# The world, measured",
        "",
        "What [the world](../world.md) is, in numbers. Generated by `python -m experiments.world.page`.",
        "",
        *difficulty_part(found),
        *oracle_part(cards(flags.oracles)),
        *policy_part(_read(flags.policy / "behaviour.json")),
        *learning_part(runs, {words[metric]: value for metric, value in teacher.items()}),
        *kernels_part(best_run(runs), shown_by(corpus, found, common_timing(runs)) if runs else {}),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _read(path: Path) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    return found


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _change(members: Sequence[RunRecord], metric: str) -> str:
    """A metric's first and last value, as means over seeds.

    >>> _change([], "fast_1")
    '-'
    """
    rows = [(run.validation[0].get(metric), run.validation[-1].get(metric)) for run in members]
    if not rows or any(value is None for row in rows for value in row):
        return "-"
    first, last = (statistics.mean(values) for values in zip(*rows, strict=True))
    return f"{_percent(first)} → {_percent(last)}"


def main(argv: Sequence[str]) -> int:
    """The command. Exit status 0, or 2 after one line about what is unusable."""

    def run() -> int:
        flags = parse_flags(Flags(), list(argv), "python -m experiments.world.page", rest="runs")
        flags.out.mkdir(parents=True, exist_ok=True)
        (flags.out / "world.md").write_text(page(flags), encoding="utf-8")
        print(f"page: {flags.out / 'world.md'}")
        return 0

    return exit_status(run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
