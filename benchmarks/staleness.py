"""Measure the seconds of a step by the age of its samples: 0, 1, 2, and 2 with in-flight refresh, by where evaluations run.

    python -m benchmarks.staleness --out FOLDER --cards 1 [--limit-seconds 540]      all on cuda:0
    python -m benchmarks.staleness --out FOLDER --cards 1,2 [--limit-seconds 540]    also with evaluations on cuda:1 alone
    python -m benchmarks.staleness --out FOLDER --cards 1+cores                      evaluations on cores, in modelled time
    python -m benchmarks.staleness --out FOLDER --cards 0 --model tiny --evaluator simulated --prompts 2 --rollouts 2 --tokens 8

The last one rehearses on a CPU. Every measurement is a file of FOLDER, such as `cards1-age2.json`, which is not measured again:
the same command goes on. No measurement is begun that may not end within the limit, judged by the longest so far. The exit status
is then 75, as that of an experiment.

The run is that of `benchmarks.loop --lengths varied`: random weights at a published shape, three turns whose lengths vary, at
most twice the mean of --tokens; the evaluator is the real pool over its corpus, or simulated. --refresh-tokens, by default half
of the longest trajectory, is what a trajectory samples from one set of weights in the arm `age2_in_flight`. From age 1 on, a
step has one forward pass more, which measures the mismatch.

Steps: medians, and the least and largest, of those in the steady state. The first step compiles, and beside the last ones there
is less to sample. Example of a row: `1 card  age 2  9.80 s [9.5, 10.1]  0.73 of age 0`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import loop
from benchmarks.corpus import corpus
from benchmarks.shapes import SHAPES
from benchmarks.training import release
from rlkernel.errors import GOES_ON


@dataclass(frozen=True)
class Arm:
    """One way of overlapping sampling with training."""

    name: str
    staleness: int
    in_flight: bool = False


ARMS = (Arm("age0", 0), Arm("age1", 1), Arm("age2", 2), Arm("age2_in_flight", 2, in_flight=True))
DEVICES: Mapping[str, str] = {"0": "cpu", "1": "cuda:0", "1+cores": "cpu", "2": "auto"}
"""The evaluator's device by the cards in use. auto: with two cards visible, the second one."""
SIZES = {"steps": 7, "prompts": 8, "rollouts": 8, "turns": 3, "tokens": 300, "corpus": 48}


def steady(rows: Sequence[dict[str, Any]], staleness: int) -> list[dict[str, Any]]:
    """The training rows of the steady state: without the first, and without the last ones, beside which less is sampled. All
    rows, where none would be left."""
    return list(rows[1 : len(rows) - max(staleness, 1)]) or list(rows)


def measure(arm: Arm, cards: str, given: argparse.Namespace) -> dict[str, Any]:
    """Train one arm; the medians of its steps, and all rows."""
    simulated = loop.Simulated() if given.evaluator == "simulated" else None
    given.evaluator_device = DEVICES[cards]
    with tempfile.TemporaryDirectory() as directory:
        refresh = given.refresh_tokens if arm.in_flight else 0
        rows = loop.train_ours(simulated, given, arm.staleness, Path(directory) / "run", refresh)
    kept = steady(rows, arm.staleness)
    walls = [row["seconds_wall"] for row in kept]
    # `settled` leaves out a first and a last row.
    found = loop.settled([{}, *kept, {}])
    return {
        "cards": cards,
        "arm": arm.name,
        **found,
        "seconds_least": min(walls),
        "seconds_largest": max(walls),
        "age": sum(row["age"] for row in kept) / len(kept),
        "steps": rows,
    }


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """The table of everything that is measured."""
    table = Table(
        "cards", "arm", "age", "step s", "of age 0", "waits s", "generation s", "evaluation s", "training s", "sampled/s"
    )
    for row in rows:
        first = next((one["seconds_wall"] for one in rows if (one["cards"], one["arm"]) == (row["cards"], "age0")), None)
        spread = f"{row['seconds_wall']:.2f} [{row['seconds_least']:.2f}, {row['seconds_largest']:.2f}]"
        share = "-" if first is None else f"{row['seconds_wall'] / first:.2f}"
        names = ("seconds_rollout", "seconds_generation", "seconds_evaluation", "seconds_training", "sampled_tokens_per_second")
        numbers = ["-" if row[name] is None else f"{row[name]:.2f}" for name in names]
        table.add_row(row["cards"], row["arm"], f"{row['age']:.2f}", spread, share, *numbers)
    Console(width=130).print(table)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command's flags, with the candidates that a real evaluator judges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the measurements")
    parser.add_argument("--cards", default="1", help="cards in use, e.g. 1,2; 0: the CPU; 1+cores: the policy alone has the card")
    parser.add_argument("--arms", default=",".join(arm.name for arm in ARMS))
    parser.add_argument("--limit-seconds", type=float, default=float("inf"))
    parser.add_argument("--model", default="0.6b", choices=SHAPES)
    parser.add_argument("--evaluator", choices=("simulated", "real"), default="real")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--refresh-tokens", type=int, default=0, help="0: half of the longest trajectory")
    for name, default in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    found = parser.parse_args(given)
    found.lengths = "varied"
    found.refresh_tokens = found.refresh_tokens or found.turns * loop.MOST * found.tokens // 2
    known = {arm.name for arm in ARMS}
    if unknown := set(found.arms.split(",")) - known:
        parser.error(f"--arms {','.join(sorted(unknown))}: use some of {', '.join(arm.name for arm in ARMS)}")
    visible = torch.cuda.device_count()
    for cards in found.cards.split(","):
        if cards not in DEVICES:
            parser.error(f"--cards {cards}: use some of {', '.join(DEVICES)}")
        if int(cards[0]) > visible or (cards == "0" and visible):
            parser.error(f"--cards {cards}: {visible} are visible")
    found.candidates = corpus(found.corpus, 0) if found.evaluator == "real" else ()
    return found


def about(flags: argparse.Namespace) -> dict[str, Any]:
    """What a measurement was made of, and on which machine."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    sizes = {name: getattr(flags, name) for name in ("model", "evaluator", "engine", "refresh_tokens", *SIZES)}
    return {"device": device, "gpus": torch.cuda.device_count(), "torch": torch.__version__, **sizes}


def main(given: Sequence[str] | None = None) -> int:
    """Measure what is not measured yet. Exit status: 0 when all is, 75 when the limit came first."""
    os.environ.setdefault("WANDB_MODE", "disabled")
    started = time.monotonic()
    flags = arguments(given)
    flags.out.mkdir(parents=True, exist_ok=True)
    status, rows = 0, [json.loads(file.read_text()) for file in sorted(flags.out.glob("cards*-*.json"))]
    for cards in flags.cards.split(","):
        for arm in (arm for arm in ARMS if arm.name in flags.arms.split(",")):
            if any((row["cards"], row["arm"]) == (cards, arm.name) for row in rows):
                continue
            begun = time.monotonic()
            if begun - started + max((row["seconds"] for row in rows), default=0.0) > flags.limit_seconds:
                status = GOES_ON
                break
            row = measure(arm, cards, flags)
            rows.append({**about(flags), **row, "seconds": time.monotonic() - begun})
            (flags.out / f"cards{cards}-{arm.name}.json").write_text(json.dumps(rows[-1], indent=1))
            release()
    show(sorted(rows, key=lambda row: (row["cards"], row["arm"])))
    if status == GOES_ON:
        print("the limit came first: the same command goes on", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
