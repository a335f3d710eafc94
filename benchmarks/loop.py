"""Measure the seconds of a training step, ours beside TRL's stock GRPOTrainer with an equally fast evaluator.

    python -m benchmarks.loop --out FILE [--model 0.6b] [--sides ours,pipelined,stock] [--steps 4]
    python -m benchmarks.loop --out FILE --evaluator real [--evaluator-device cuda:0] [--lengths varied] [--sides ours,pipelined]

The policy has random weights at a published shape. Completions run to their full length (no stop token), so that both sides
sample the same number of tokens: ours 3 turns of 300 each, the stock trainer 900 in one turn, since without vLLM it has no
turns. With `--lengths varied`, so many tokens end a completion that it has 300 on average and 600 at most, as a trained policy's
lengths vary (ours only). `ours`, `pipelined` and `age2` are `rlkernel.training.loop.train` with staleness 0, 1 and 2; only the
model, and what stops, are put in by hand.

simulated evaluator (default): 12 ms under one lock, as on a GPU, and 130 ms more for each candidate; nothing is evaluated. The
stock trainer calls it as an async reward function: once per completion, so a third as often as ours.
real evaluator: the pool. What it judges is not what the policy wrote but candidates of the benchmarks' corpus over the suite,
one after the other, each made unknown to the caches by a comment. --evaluator-device auto: with two GPUs the policy is on the
first and evaluations on the second; cuda:0: both share one card.

Steps: all but the first (which compiles) and the last (which has no next batch to sample beside it); medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.corpus import Case, corpus
from benchmarks.shapes import SHAPES, random_model
from benchmarks.stock import Load, train_stock
from benchmarks.training import make_run, release
from rlkernel.policy import hf
from rlkernel.policy.small import load_small
from rlkernel.training import loop
from rlkernel.training.placement import EvaluatorDemand, open_evaluator
from rlkernel.types import Evaluation, Problem, Status

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MOST, STOPS = 2, 0.797
"""For varied lengths: the longest as a multiple of the mean; and the tokens that stop, as a share of vocabulary / mean. For
equally likely tokens the mean is then right: (1 - exp(-2 x 0.797)) / 0.797 = 1."""
STALENESS = {"ours": 0, "pipelined": 1, "age2": 2}
"""`Run.staleness` of each side that is ours."""
LOCKED_SECONDS, LATENCY_SECONDS = 0.012, 0.130
SECONDS = ("seconds_wall", "seconds_generation", "seconds_evaluation", "seconds_evaluation_hidden", "seconds_training")
WAITS = ("seconds_rollout", "seconds_gpu_wait_evaluation", "seconds_gpu_wait_policy")
OTHERS = ("sampled_tokens_per_second", "memory_gpu_gib")


@dataclass
class Simulated:
    """An evaluator that answers after a fixed time. The speedup is drawn from the number of the call."""

    calls: int = 0
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        self.calls += 1
        speedup = 0.5 + self.calls * 0.618 % 1
        async with self.lock:
            await anyio.sleep(LOCKED_SECONDS)
        await anyio.sleep(LATENCY_SECONDS)
        return Evaluation(Status.CORRECT, "simulated", speedup=speedup, coverage=1.0, timing="modelled")


@dataclass
class FromCorpus:
    """An evaluator that judges the corpus's candidates one after the other, whatever it is given."""

    evaluate_one: Callable[[Problem, str | None], Awaitable[Evaluation]]
    cases: Sequence[Case]
    calls: int = 0

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        case = self.cases[self.calls % len(self.cases)]
        self.calls += 1
        return await self.evaluate_one(case.problem, f"{case.code}\n# call {self.calls}\n")


def train_ours(
    evaluator: Any, given: argparse.Namespace, staleness: int, directory: Path, refresh_tokens: int = 0
) -> list[dict[str, Any]]:
    """Train by `rlkernel.training.loop.train`. Returns the training rows of its metrics.jsonl."""
    varied = given.lengths == "varied"
    longest = MOST * given.tokens if varied else given.tokens
    run = make_run(given.prompts, given.rollouts, given.turns, longest, given.steps, staleness=staleness, engine=given.engine)
    held_out = Problem("held_out", 1, "validation", "")
    run = replace(
        run, problems=(*run.problems, held_out), validation_every=10**9, validation_rollouts=1, refresh_tokens=refresh_tokens
    )
    model = random_model(given.model, DEVICE, torch.float32)
    stops = frozenset(range(max(1, round(STOPS * model.config.vocab_size / given.tokens)))) if varied else frozenset()

    async def body() -> None:
        async with AsyncExitStack() as stack:
            judge = evaluator or await stack.enter_async_context(open_evaluator(EvaluatorDemand(given.evaluator_device), None))
            if evaluator is None:
                from_corpus = FromCorpus(judge.evaluate, given.candidates)
                stack.enter_context(mock.patch.object(judge, "evaluate", from_corpus.evaluate))
            await loop.train(run, directory, evaluator=judge, checkpoint_every=10**9)

    with (
        mock.patch.object(loop, "load_model", lambda name, **changes: (model, load_small()[1])),
        mock.patch.object(hf, "stop_ids", lambda model, tokenizer: stops),
    ):
        anyio.run(body)
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["split"] == "train"]


def settled(rows: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """The medians over the steps between the first and the last, or over all where there are fewer than three."""
    rows = rows[1:-1] or rows
    found: dict[str, float | None] = {}
    for name in (*SECONDS, *WAITS, *OTHERS):
        values = [row[name] for row in rows if row.get(name) is not None]
        found[name] = statistics.median(values) if values else None
    whole, hidden = found["seconds_evaluation"], found["seconds_evaluation_hidden"]
    found["hidden"] = hidden / whole if whole and hidden is not None else None
    return found


def measure(side: str, given: argparse.Namespace, directory: Path) -> dict[str, Any]:
    simulated = None if given.evaluator == "real" else Simulated()
    if side == "stock":
        if simulated is None:
            raise ValueError("the stock trainer is measured with the simulated evaluator only")
        model = random_model(given.model, DEVICE, getattr(torch, given.stock_dtype))
        load = Load(given.prompts, given.rollouts, given.turns * given.tokens, given.steps)
        steps = train_stock(model, load_small()[1], simulated.evaluate, load, directory)
    elif side in STALENESS:
        steps = train_ours(simulated, given, STALENESS[side], directory)
    else:
        raise ValueError(f"side {side!r}: use ours, pipelined, age2 or stock")
    row: dict[str, Any] = {"side": side, **settled(steps), "steps": steps}
    return row


def show(rows: Sequence[dict[str, Any]]) -> None:
    table = Table("seconds of", "step", "generation", "evaluation", "hidden", "training", "waits", "sampled/s", "GiB")
    for row in rows:
        if "error" in row:
            table.add_row(row["side"], row["error"])
            continue
        numbers = [row[name] for name in SECONDS if name != "seconds_evaluation_hidden"]
        cells = ["-" if value is None else f"{value:.2f}" for value in numbers]
        hidden = "-" if row["hidden"] is None else f"{row['hidden']:.0%}"
        others = [row["seconds_gpu_wait_policy"], row["sampled_tokens_per_second"], row["memory_gpu_gib"]]
        table.add_row(row["side"], *cells[:3], hidden, cells[3], *("-" if value is None else f"{value:.1f}" for value in others))
    console = Console(width=110)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    os.environ.setdefault("WANDB_MODE", "disabled")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="0.6b", choices=SHAPES)
    parser.add_argument("--sides", default="ours,pipelined,stock")
    parser.add_argument("--evaluator", choices=("simulated", "real"), default="simulated")
    parser.add_argument("--evaluator-device", default="auto", help="of the real evaluator")
    parser.add_argument("--lengths", choices=("equal", "varied"), default="equal", help="of completions; varied: ours only")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--stock-dtype", choices=("float32", "bfloat16"), default="float32", help="float32 is TRL's default")
    sizes = {"steps": 4, "prompts": 16, "rollouts": 8, "turns": 3, "tokens": 300}
    for name, default in {**sizes, "corpus": 48}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args(arguments)
    given.candidates = corpus(given.corpus, 0) if given.evaluator == "real" else ()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    settings = {
        name: getattr(given, name) for name in ("model", "evaluator", "evaluator_device", "stock_dtype", "lengths", *sizes)
    }
    result: dict[str, Any] = {
        "device": device,
        "gpus": torch.cuda.device_count(),
        "torch": torch.__version__,
        **settings,
        "sides": [],
    }
    for side in given.sides.split(","):
        try:
            with tempfile.TemporaryDirectory() as directory:
                row = measure(side, given, Path(directory) / "run")
        except Exception as error:  # the other sides' numbers must not be lost
            traceback.print_exc()
            row = {"side": side, "error": (str(error).strip().splitlines() or [type(error).__name__])[0]}
        result["sides"].append(row)
        given.out.write_text(json.dumps(result, indent=1))
        release()
    show(result["sides"])


if __name__ == "__main__":
    main()
