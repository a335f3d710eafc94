"""Writers of a run: metrics.jsonl, transcripts.jsonl, and the progress bar."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from rlkernel.config import Run
from rlkernel.metrics import is_hack, is_lazy
from rlkernel.runs.directory import METRICS, TRANSCRIPTS
from rlkernel.runs.wandb import Remote
from rlkernel.types import Group, Split, Trajectory

SUMMARY_WIDTH = 52
"""Characters of `summary` where every share has two digits."""
TEXT_LIMIT = 20_000
"""Characters of one text of a transcript; candidates may write without end."""


@dataclass(frozen=True, slots=True)
class RunLog:
    """Appends rows. Each is complete on the disk's side of the process when `write` returns, so a kill loses nothing."""

    directory: Path
    remote: Remote | None

    def write(self, split: Split, step: int, values: Mapping[str, Any]) -> None:
        """One row of metrics.jsonl, and the same to Weights & Biases; the transcripts of its step are there already."""
        _append(self.directory / METRICS, [{"split": split, "step": step, **values}])
        if self.remote is not None:
            self.remote.row(split, step, values)

    def finish(self) -> None:
        """Send all turns that were kept to Weights & Biases, once the run has taken its last step."""
        if self.remote is not None:
            self.remote.everything()

    def write_transcripts(self, split: Split, step: int, prompts: Mapping[str, str], chosen: Sequence[Trajectory]) -> None:
        """One row of transcripts.jsonl per chosen trajectory. prompts: the text of each problem's prompt, by the problem's
        name."""
        rows = [transcript(trajectory, prompts[trajectory.problem.name]) for trajectory in chosen]
        _append(self.directory / TRANSCRIPTS, [{"split": split, "step": step, **row} for row in rows])


def transcript(trajectory: Trajectory, prompt: str) -> dict[str, Any]:
    """A trajectory as a row of JSON: without its tokens, and with bounded texts."""
    return {
        "problem": trajectory.problem.name,
        "prompt": prompt[:TEXT_LIMIT],
        "turns": [
            {
                "completion": turn.completion.text[:TEXT_LIMIT],
                "stop": turn.completion.stop,
                "code": None if turn.code is None else turn.code[:TEXT_LIMIT],
                "evaluation": turn.evaluation.to_json(),
                "reward": turn.reward,
                "feedback": turn.feedback[:TEXT_LIMIT],
            }
            for turn in trajectory.turns
        ],
    }


def choose(groups: Sequence[Group], limit: int) -> list[Trajectory]:
    """At most `limit` different trajectories: the best, one that improved, a lazy one, a hack, then evenly spaced ones."""
    everyone = [trajectory for group in groups for trajectory in group.trajectories]
    wanted: list[Callable[[Trajectory], bool]] = [
        lambda t: t.turns[0].reward < t.turns[-1].reward,
        lambda t: any(is_lazy(turn.evaluation) for turn in t.turns),
        lambda t: any(is_hack(turn.evaluation) for turn in t.turns),
    ]
    indices = [max(range(len(everyone)), key=lambda i: everyone[i].best.reward)]
    for test in wanted:
        indices += [i for i, trajectory in enumerate(everyone) if i not in indices and test(trajectory)][:1]
    others = [i for i in range(len(everyone)) if i not in indices]
    left = min(limit - len(indices), len(others))  # from all groups: the last problems may be of another family
    return [everyone[i] for i in (*indices, *(others[(2 * n + 1) * len(others) // (2 * left)] for n in range(left)))][:limit]


def _append(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))


class Display:
    """The progress bar of one run on standard error; plain lines, one per step, when that is not a terminal."""

    def __init__(self, run: Run, step: int, console: Console | None = None) -> None:
        self.console = console or Console(file=sys.stderr, highlight=False)
        self._name = f"{run.name} seed {run.seed}"
        self._steps = run.steps
        # In a narrow terminal, the phase is cut off first.
        self._progress = Progress(
            TextColumn("[bold]{task.description}", table_column=Column(no_wrap=True, min_width=len(self._name))),
            BarColumn(bar_width=6),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}", table_column=Column(no_wrap=True, min_width=SUMMARY_WIDTH)),
            TextColumn("[dim]{task.fields[phase]}", table_column=Column(no_wrap=True)),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._task = self._progress.add_task(self._name, total=run.steps, completed=step, numbers="", phase="")
        self._done = self._expected = 0
        self._what = ""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def expect(self, what: str, turns: int) -> None:
        """The next `turns` calls of `turn_done` belong to `what`."""
        self._what, self._done, self._expected = what, 0, turns
        self.phase(f"{what} 0/{turns}")

    def turn_done(self, _: object = None) -> None:
        self._done += 1
        self.phase(f"{self._what} {self._done}/{self._expected}")

    def phase(self, text: str) -> None:
        self._progress.update(self._task, phase=text)

    def row(self, split: Split, step: int, values: Mapping[str, Any]) -> None:
        """Show a row of metrics."""
        numbers = summary(values)
        if split == "train":
            self._progress.update(self._task, completed=step, numbers=numbers)
        elif self.console.is_terminal:
            self.console.print(f"{self._name}  step {step}/{self._steps}  validation  {numbers}")
        if not self.console.is_terminal:
            self.console.print(f"{self._name}  step {step}/{self._steps}  {split}  {numbers}", soft_wrap=True)


def summary(values: Mapping[str, Any]) -> str:
    """The few numbers of a row that people watch.

    >>> summary({"reward": 0.5, "fast_1": 0.25, "fast_1.2": 0.125, "hacking_rate": 0.0, "lazy_rate": 1.0})
    'reward 0.50 fast@1 25% fast@1.2 12% hack 0% lazy 100%'
    """
    shares = {"fast@1": "fast_1", "fast@1.2": "fast_1.2", "hack": "hacking_rate", "lazy": "lazy_rate"}
    return f"reward {values['reward']:.2f}" + "".join(f" {name} {values[key]:.0%}" for name, key in shares.items())
