"""Measure whole steps of full training at the papers' sizes, beside what the card could do and what was predicted.

    python -m benchmarks.full_size --out FILE [--shape 8b] [--weights bfloat16] [--evaluation-gib 24] [--steps 2]
    accelerate launch --config_file examples/fsdp2.yaml -m benchmarks.full_size --out FILE --weights float32 --evaluator simulated
    python -m benchmarks.full_size --out FILE --shape 14b --evaluation-gib 16 --arm trloo_mrs_pr_prs --steps 1 --tokens 512

The second command trains with weights in pieces, one process a card, and no card is left that could evaluate. Memory is then
that of the first process, and limits are those of all cards. The third one takes a step of an arm of the preset `paper`, with its
methods and settings; sizes are those of the flags, and the prompts are ours.

Weights are random at the published shape, made on the card in their own format. A step is that of a run: 4 prompts x 8 rollouts x
3 turns x 1,024 tokens are sampled (no token stops), every turn is judged by the pool on the same card, and all weights take one
update. What is judged are candidates of the benchmarks' corpus, not what random weights write. No checkpoint is written. The last
step counts: the ones before compile. The first one has no moments before its end: `--steps 1` predicts memory without them.

Limits. Sampling: the bytes of the weights and of the rows' keys and values, once per token, over the card's bandwidth; the
contexts' own computation is not in it. Training: 6 operations per matrix weight and token, and attention's, at 60 % of the card's
dense bfloat16 rate; recomputation is not in it. The card is an H200 (4.8 TB/s, 989 TFLOP/s), or what its data sheet says where
it is an H100; without a GPU, limits are left out.

`--shape tiny --evaluator simulated` runs without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import torch
from rich.console import Console
from rich.table import Table
from transformers import Qwen3Config

from benchmarks.corpus import corpus
from benchmarks.loop import FromCorpus, Simulated
from benchmarks.shapes import SHAPES, random_model
from benchmarks.training import FEEDBACK_TOKENS, PROMPT_TOKENS, make_run
from experiments import catalogue, paper_scale
from rlkernel.commands.experiment import lead_or_follow
from rlkernel.config import Run
from rlkernel.policy import hf
from rlkernel.policy.slots.cache import attention_widths, bytes_per_position
from rlkernel.policy.small import load_small
from rlkernel.training import follower, loop, ranks, spread
from rlkernel.training.eight_bit_adamw import EightBitAdamW
from rlkernel.training.memory import GIB, MemoryPlan
from rlkernel.training.memory_table import memory_table
from rlkernel.training.placement import EvaluatorDemand, open_evaluator
from rlkernel.training.preflight import plan_here
from rlkernel.training.trainer import KernelGRPOTrainer
from rlkernel.types import Problem

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BANDWIDTH = 3.35e12 if DEVICE == "cuda" and "H100" in torch.cuda.get_device_name() else 4.8e12
"""Bytes per second by the data sheet of an H100, or of an H200."""
OPERATIONS = 989e12
"""The dense bfloat16 operations per second of either."""
REACHED = 0.6
"""The part of the operations that a good trainer reaches."""
SIZES = {"prompts": 4, "rollouts": 8, "turns": 3, "tokens": 1024, "steps": 2}


def sampling_limit(config: Any, run: Run, matrices: int) -> float:
    """The tokens per second that the bandwidth allows, with all rows at once and contexts at their mean length."""
    rows = run.prompts_per_step * run.rollouts / ranks.size()
    context = PROMPT_TOKENS + run.turns * run.max_new_tokens / 2 + (run.turns - 1) / 2 * FEEDBACK_TOKENS
    return rows * BANDWIDTH / (2 * matrices + rows * context * bytes_per_position(config, torch.bfloat16))


def training_limit(config: Any, run: Run, matrices: int) -> float:
    """The tokens per second, prompts and feedback included, of which one pass and its gradients take `REACHED` of the rate."""
    length = row_tokens(run)
    # Scores and sums: 2 products of 2 operations per query value and position, of which causal attention needs half; 3 for both
    # passes.
    attention = 3 * 2 * attention_widths(config)[0] * length * int(config.num_hidden_layers)
    return REACHED * OPERATIONS / (6 * matrices + attention)


def row_tokens(run: Run) -> int:
    """The tokens of one trajectory: its prompt, its turns and the feedback between them."""
    return PROMPT_TOKENS + run.turns * run.max_new_tokens + (run.turns - 1) * FEEDBACK_TOKENS


@contextmanager
def timed_updates(owner: type[torch.optim.Optimizer], seconds: list[float]) -> Iterator[None]:
    """Note how long each step of an optimiser takes."""
    original: Callable[..., None] = owner.step

    def step(self: Any, *given: Any) -> None:
        _wait()
        started = time.perf_counter()
        original(self, *given)
        _wait()
        seconds.append(time.perf_counter() - started)

    with mock.patch.object(owner, "step", step):
        yield


def _wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def _no_checkpoint(trainer: Any, *given: Any, **changes: Any) -> None:
    """A checkpoint of the largest models is twice as large as a small disk; its folder is enough."""
    (Path(trainer.args.output_dir) / f"checkpoint-{trainer.state.global_step}").mkdir(parents=True, exist_ok=True)


@contextmanager
def training_of(model: Any) -> Iterator[None]:
    """Let runs of this process train `model`, whose samples no token stops, and write no checkpoint."""
    with ExitStack() as stack:
        for module in (loop, follower):
            stack.enter_context(mock.patch.object(module, "load_model", lambda name, **changes: (model, load_small()[1])))
        for module in (hf, spread):
            stack.enter_context(mock.patch.object(module, "stop_ids", lambda model, tokenizer: frozenset()))
        stack.enter_context(mock.patch.object(KernelGRPOTrainer, "_save_checkpoint", _no_checkpoint))
        yield


def make_model(given: argparse.Namespace) -> Any:
    """The model with random weights, the same in every process, on this process's card."""
    if DEVICE == "cuda":
        torch.cuda.set_device(ranks.local_rank())
    return random_model(given.shape, DEVICE, getattr(torch, given.weights))


def train(given: argparse.Namespace, run: Run, directory: Path) -> dict[str, Any]:
    """Train `run` on this machine. Returns the last training row, the seconds of updates, and the bytes of the cache."""
    engines: list[Any] = []
    updates: list[float] = []

    def opened(*args: Any, **kwargs: Any) -> Any:
        engines.append(open_engine(*args, **kwargs))
        return engines[-1]

    async def body() -> None:
        async with AsyncExitStack() as stack:
            judge: Any = Simulated()
            if given.evaluator == "real":
                opening = open_evaluator(EvaluatorDemand(given.device, evaluation_gib=run.evaluation_gib), None)
                judge = await stack.enter_async_context(opening)
                cases = corpus(48)
                stack.enter_context(mock.patch.object(judge, "evaluate", FromCorpus(judge.evaluate, cases).evaluate))
            await loop.train(run, directory, evaluator=judge, checkpoint_every=10**9)

    open_engine = hf.open_engine
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(hf, "open_engine", opened))
        stack.enter_context(timed_updates(EightBitAdamW if run.weights == "bfloat16" else torch.optim.AdamW, updates))
        anyio.run(body)
    rows = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if row["split"] == "train"]
    return {"steps": steps, "last": steps[-1], "seconds_updates": updates, "cache_bytes": engines[0].cache_bytes}


def run_of(given: argparse.Namespace) -> Run:
    """The run that is measured: TRLOO, or an arm of the preset `paper`, at the sizes of the flags."""
    sizes = (given.prompts, given.rollouts, given.turns, given.tokens, given.steps)
    run = make_run(*sizes, weights=given.weights, evaluation_gib=given.evaluation_gib, device=given.device)
    if given.arm:
        sized = ("problems", "environment", "prompts_per_step", "rollouts", "turns", "max_new_tokens", "steps")
        kept = (*sized, "model", "weights", "evaluation_gib", "device")
        run = replace(paper_scale.adapt(arms()[given.arm]), **{name: getattr(run, name) for name in kept})
    held_out = Problem("held_out", 1, "validation", "")
    changes: dict[str, Any] = {"validation_every": 10**9, "validation_rollouts": 1, "validation_turns": 1}
    return replace(run, problems=(*run.problems, held_out), **changes)


def arms() -> dict[str, Run]:
    """The arms of all experiments by name."""
    return {name: run for experiment in catalogue.NAMES for name, run in catalogue.load(experiment).arms.items()}


def measure(given: argparse.Namespace) -> tuple[dict[str, Any], MemoryPlan]:
    """Measure one shape, from no model to its last step."""
    run = run_of(given)
    config = Qwen3Config(**SHAPES[given.shape])
    found = replace(plan_here(run, config), model=given.shape)
    started = time.perf_counter()
    model = make_model(given)
    made = time.perf_counter() - started
    parameters, embedding = model.num_parameters(), model.get_input_embeddings().weight.numel()
    tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    matrices = parameters - (0 if tied else embedding)
    with tempfile.TemporaryDirectory() as directory, training_of(model):
        trained = train(given, run, Path(directory) / "run")
    last, rows = trained["last"], given.prompts * given.rollouts
    late = sum(part.bytes for part in found.parts if part.what == "moments") if given.steps == 1 else 0
    result: dict[str, Any] = {
        "seconds_model": made,
        "parameters": parameters,
        "processes": ranks.size(),
        "seconds": {
            "whole step": last["seconds_wall"],
            "sampling": last["seconds_generation"],
            "evaluation": last["seconds_evaluation"],
            "training": last["seconds_training"],
            "of it the update": trained["seconds_updates"][-1] if trained["seconds_updates"] else None,
        },
        "tokens_per_second": {
            "sampling": rows * given.turns * given.tokens / last["seconds_generation"],
            "training": rows * row_tokens(run) / last["seconds_training"],
        },
        "predicted_gib": (found.taken - late + trained["cache_bytes"]) / GIB,
        "cache_gib": trained["cache_bytes"] / GIB,
        "steps": trained["steps"],
    }
    if DEVICE == "cuda":
        limits = {"sampling": sampling_limit(config, run, matrices), "training": training_limit(config, run, matrices)}
        limits = {part: limit * ranks.size() for part, limit in limits.items()}
        # A row resets the peak, so each has its own.
        peaks = {"allocated": last["memory_gpu_gib"], "reserved": torch.cuda.max_memory_reserved() / GIB}
        result.update(limits_tokens_per_second=limits, peak_gib=peaks)
    return result, found


def show(result: Mapping[str, Any], found: MemoryPlan) -> None:
    """Print the seconds by part, tokens per second beside their limits, and the memory beside its prediction."""
    console = Console(width=100)
    table = Table("part", "seconds", "tokens/s", "limit", "reached")
    limits = result.get("limits_tokens_per_second", {})
    for part, seconds in result["seconds"].items():
        speed, limit = result["tokens_per_second"].get(part), limits.get(part)
        cells = ["-" if value is None else f"{value:.{digits}f}" for value, digits in ((seconds, 2), (speed, 0), (limit, 0))]
        table.add_row(part, *cells, f"{speed / limit:.0%}" if speed and limit else "-")
    console.print(table)
    console.print(memory_table(found))
    line = f"cache {result['cache_gib']:.2f} GiB; predicted with it {result['predicted_gib']:.2f} GiB"
    peaks = result.get("peak_gib")
    if peaks:
        off = result["predicted_gib"] / peaks["allocated"] - 1
        line += f"; measured {peaks['allocated']:.2f} allocated, {peaks['reserved']:.2f} reserved: {off:+.1%}"
    console.print(line)


def lead(given: argparse.Namespace) -> int:
    """Measure, write and print. Returns the exit status."""
    result, found = measure(given)
    device = torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu"
    settings = {name: getattr(given, name) for name in ("shape", "arm", "weights", "evaluator", "evaluation_gib", *SIZES)}
    parts = {part.what: part.bytes / GIB for part in found.parts}
    about = {"device": device, "torch": torch.__version__, **settings, "parts_gib": parts}
    given.out.write_text(json.dumps({**about, **result}, indent=1))
    show(result, found)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    os.environ.setdefault("WANDB_MODE", "disabled")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shape", default="8b", choices=SHAPES)
    parser.add_argument("--weights", default="bfloat16", choices=("float32", "bfloat16"))
    parser.add_argument("--arm", default="", choices=("", *arms()), metavar="NAME", help="an arm of the preset `paper`")
    parser.add_argument("--evaluator", choices=("real", "simulated"), default="real")
    parser.add_argument("--device", help="of the real evaluator; auto, and cpu where several processes train")
    parser.add_argument("--evaluation-gib", type=int, default=0, help="see Run.evaluation_gib")
    parser.add_argument("--prompts", type=int, default=SIZES["prompts"])
    parser.add_argument("--rollouts", type=int, default=SIZES["rollouts"])
    parser.add_argument("--turns", type=int, default=SIZES["turns"])
    parser.add_argument("--tokens", type=int, default=SIZES["tokens"])
    parser.add_argument("--steps", type=int, default=SIZES["steps"])
    given = parser.parse_args(arguments)
    given.device = given.device or ("cpu" if ranks.size() > 1 else "auto")
    if ranks.rank():
        with training_of(make_model(given)):
            return lead_or_follow(lambda: 0)
    return lead_or_follow(lambda: lead(given))


if __name__ == "__main__":
    sys.exit(main())
