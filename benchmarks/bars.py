"""Measure sampling and training at the papers' sizes, each figure beside the bar that it is held to.

    python -m benchmarks.bars --out FOLDER [--rows sampling,step] [--tiny]

Rows: `sampling` (0.6B, 128 rows), `uneven` (0.6B in the loop, uneven lengths), `sampling_8b` (long contexts, beside the bandwidth
of an H200), `second_start` (of the compiled sampler, in a process of its own), `training`, `step` (a whole step of 0.6B with a
simulated evaluator), `long` (128 conversations of 3 x 4k tokens at most, 1.7B: the share of the time in which less than a tenth
of them is left) and `pages` (32 conversations of 3 x 8k tokens at most, 8B, in the memory of 4 slots of full length). Each writes
FOLDER/ROW.json when it is done; every row takes less than ten minutes of one H200.
`--tiny` takes a tiny model and few tokens, for a machine without a GPU. Weights are random at the published shapes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import generation, loop, training
from benchmarks.full_size import BANDWIDTH, DEVICE, REACHED
from benchmarks.shapes import SHAPES, random_model
from rlkernel.policy.blocks import keep_programs
from rlkernel.policy.engine import Request
from rlkernel.policy.slots.cache import bytes_per_position
from rlkernel.policy.slots.engine import SlotEngine
from rlkernel.training.memory import MICRO_TOKENS


@dataclass(frozen=True)
class Bar:
    """A figure that is held to a bar."""

    measure: Callable[[bool], Mapping[str, Any]]
    """Called with whether a tiny size will do; its `figure` is compared."""
    bar: float
    unit: str
    more_is_better: bool = True


def sampling(tiny: bool) -> dict[str, Any]:
    """Prefill and decoding of one batch of rows of equal length."""
    device = torch.device(DEVICE)
    batch, prompt, new = (4, 16, 8) if tiny else (128, 384, 192)
    flags = argparse.Namespace(batch=batch, prompt=prompt, new=new)
    found = generation.measure("slots", generation.build("tiny" if tiny else "0.6b", device), flags, device)
    return {"figure": found["tokens_per_second"], **found}


def in_loop(tiny: bool, **changes: Any) -> dict[str, Any]:
    """Steps of the training loop with a simulated evaluator."""
    sizes = {"prompts": 2, "rollouts": 2, "turns": 2, "tokens": 8, "steps": 2} if tiny else {
        "prompts": 16, "rollouts": 8, "turns": 3, "tokens": 300, "steps": 4,
    }  # fmt: skip
    common = {"model": "tiny" if tiny else "0.6b", "evaluator": "simulated", "evaluator_device": "auto", "engine": "auto"}
    with tempfile.TemporaryDirectory() as directory:
        given = argparse.Namespace(**common, **sizes, lengths="equal", stock_dtype="float32")
        vars(given).update(changes)
        return loop.measure("ours", given, Path(directory) / "run")


def uneven(tiny: bool) -> dict[str, Any]:
    """The tokens per second of generation where completions end by themselves."""
    found = in_loop(tiny, lengths="varied")
    return {"figure": found["sampled_tokens_per_second"], **found}


def step(tiny: bool) -> dict[str, Any]:
    found = in_loop(tiny)
    return {"figure": found["seconds_wall"], **found}


def train(tiny: bool) -> dict[str, Any]:
    """A step of training alone, on made-up rows."""
    prompts, rollouts, tokens = (2, 2, 8) if tiny else (16, 8, 300)
    run = training.make_run(prompts, rollouts, 3, tokens, 2 if tiny else 4)
    found = training.measure("tiny-full" if tiny else "0.6b-full", run, MICRO_TOKENS)
    return {"figure": found["seconds_step"], **found}


def sampling_8b(tiny: bool) -> dict[str, Any]:
    """The share that decoding reaches of what the bandwidth allows: weights, and each row's keys and values, once per token."""
    shape, rows, prompt, new = ("tiny", 4, 16, 8) if tiny else ("8b", 64, 3072, 2048)
    model = random_model(shape, DEVICE, torch.bfloat16)
    engine = SlotEngine(model, frozenset(), 1.0, slots=rows)
    draw = random.Random(0)
    found: dict[str, Any] = {}
    for budget in (new // 8, new):  # the first compiles and captures
        contexts = [tuple(draw.choices(range(SHAPES[shape]["vocab_size"]), k=prompt)) for _ in range(rows)]
        requests = [Request(i, context, i, budget) for i, context in enumerate(contexts)]
        _, first, seconds = generation.run(engine, requests, torch.device(DEVICE))
        found = {
            "seconds_prefill": first,
            "seconds": seconds,
            "decode_tokens_per_second": rows * (budget - 1) / (seconds - first),
        }
    matrices = model.num_parameters() - model.get_input_embeddings().weight.numel()
    read = 2 * matrices + rows * (prompt + new / 2) * bytes_per_position(model.config, torch.bfloat16)
    limit = rows * BANDWIDTH / read
    return {"figure": found["decode_tokens_per_second"] / limit, "limit_tokens_per_second": limit, **found}


def second_start(tiny: bool) -> dict[str, Any]:
    """The seconds from an engine's creation to its first tokens, in the second of two processes with one folder of programs."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "benchmarks.bars", "--start", directory, *(["--tiny"] if tiny else [])]
        told = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(2)]
    first, second = (float(text.split()[-1]) for text in told)
    return {"figure": second, "first": first}


def start(directory: Path, tiny: bool) -> None:
    """Print how long an engine takes from its creation to its first tokens."""
    keep_programs(directory)
    model = random_model("tiny" if tiny else "0.6b", DEVICE, torch.float32)
    started = time.perf_counter()
    engine = SlotEngine(model, frozenset(), 1.0, slots=8 if tiny else 128, copy=True, compiled=None)
    requests = [Request(i, tuple(range(3, 3 + (8 if tiny else 384))), i, 8) for i in range(4 if tiny else 128)]
    generation.run(engine, requests, torch.device(DEVICE))
    print(time.perf_counter() - started)


def converse(engine: SlotEngine, rows: int, turns: int, most: int, prompt: int, look: Callable[[int, float], None]) -> int:
    """Sample conversations whose turns have lengths between nothing and the limit; a turn begins when the one before has ended.
    look: called after each chunk with the conversations that are left before it and its seconds. Returns the tokens sampled."""
    draw = random.Random(0)
    joining = [Request(i, tuple(range(3, 3 + prompt)), i, draw.randint(1, most)) for i in range(rows)]
    contexts = {request.key: request.context_ids for request in joining}
    left, sampled = dict.fromkeys(range(rows), turns), 0
    while left:
        before, waiting = time.perf_counter(), len(left)
        finished = engine.advance(joining, 32)
        joining = []
        for sample in finished:
            sampled += len(sample.token_ids)
            left[sample.key] -= 1
            if not left[sample.key]:
                del left[sample.key]
                continue
            contexts[sample.key] = (*contexts[sample.key], *sample.token_ids, 7, 8, 9)
            joining.append(Request(sample.key, contexts[sample.key], draw.randint(0, 10**6), draw.randint(1, most)))
        look(waiting, time.perf_counter() - before)
    return sampled


def long(tiny: bool) -> dict[str, Any]:
    """The share of the time in which less than a tenth of the conversations are left."""
    shape, rows, most, prompt = ("tiny", 16, 16, 8) if tiny else ("1.7b", 128, 4096, 384)
    engine = SlotEngine(random_model(shape, DEVICE, torch.bfloat16), frozenset(), 1.0, slots=rows)
    times: list[tuple[int, float]] = []
    started = time.perf_counter()
    sampled = converse(engine, rows, 3, most, prompt, lambda left, seconds: times.append((left, seconds)))
    seconds = time.perf_counter() - started
    tail = sum(each for left, each in times if left < rows / 10)
    return {"figure": tail / seconds, "seconds": seconds, "tokens_per_second": sampled / seconds, "seconds_of_few": tail}


def pages(tiny: bool) -> dict[str, Any]:
    """How many conversations of uneven length, up to 25k tokens, are sampled at a time in the memory that one slot for each of so
    many would take: the mean over the time in which more wait."""
    shape, rows, most, prompt = ("tiny", 16, 40, 8) if tiny else ("8b", 32, 8192, 1024)
    model = random_model(shape, DEVICE, torch.bfloat16)
    longest, equal = prompt + 3 * most, rows // 8
    each = bytes_per_position(model.config, torch.bfloat16)
    few = (equal + 1) * longest * each
    engine = SlotEngine(model, frozenset(), 1.0, slots=rows, cache_bytes=few, page=16 if tiny else None)
    times: list[tuple[int, float]] = []
    started = time.perf_counter()

    def look(left: int, seconds: float) -> None:
        if engine.active > len(engine._held.running()):
            times.append((len(engine._held.running()), seconds))

    sampled = converse(engine, rows, 3, most, prompt, look)
    total = time.perf_counter() - started
    crowded = sum(seconds for _, seconds in times)
    mean = sum(running * seconds for running, seconds in times) / crowded if crowded else float(rows)
    return {"figure": mean / equal, "seconds": total, "tokens_per_second": sampled / total, "at_a_time": mean, "of_equal": equal}


ROWS = {
    "sampling": Bar(sampling, 32_000, "tokens/s"),
    "uneven": Bar(uneven, 24_000, "tokens/s"),
    "sampling_8b": Bar(sampling_8b, REACHED, "of the bandwidth limit"),
    "second_start": Bar(second_start, 8.0, "s", more_is_better=False),
    "training": Bar(train, 2.2, "s a step", more_is_better=False),
    "step": Bar(step, 8.0, "s a step", more_is_better=False),
    "long": Bar(long, 0.15, "of the time few are left", more_is_better=False),
    "pages": Bar(pages, 2.0, "times the slots of one length"),
}


def show(figures: Mapping[str, float | str]) -> None:
    table = Table("row", "figure", "bar", "", "met")
    for name, figure in figures.items():
        row = ROWS[name]
        if isinstance(figure, str):
            table.add_row(name, "failed", f"{row.bar:g}", row.unit, figure)
            continue
        met = figure >= row.bar if row.more_is_better else figure <= row.bar
        table.add_row(name, f"{figure:.4g}", f"{row.bar:g}", row.unit, "yes" if met else "no")
    Console(width=110).print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    os.environ.setdefault("WANDB_MODE", "disabled")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--start", type=Path, help="used by the row second_start itself")
    given = parser.parse_args(arguments)
    if given.start:
        start(given.start, given.tiny)
        return
    if given.out is None:
        parser.error("--out: name a folder")
    unknown = set(given.rows.split(",")) - ROWS.keys()
    if unknown:
        parser.error(f"--rows: {', '.join(sorted(unknown))} unknown; use {', '.join(ROWS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    figures: dict[str, float | str] = {}
    for name in given.rows.split(","):
        row = ROWS[name]
        try:
            found = dict(row.measure(given.tiny))
            figures[name] = float(found["figure"])
        except Exception as error:  # the other rows' figures must not be lost
            traceback.print_exc()
            found = {"error": str(error)}
            figures[name] = type(error).__name__
        device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        about = {"row": name, "bar": row.bar, "unit": row.unit, "device": device, "torch": torch.__version__, "tiny": given.tiny}
        (given.out / f"{name}.json").write_text(json.dumps({**about, **found}, indent=1) + "\n")
        training.release()
    show(figures)


if __name__ == "__main__":
    main()
