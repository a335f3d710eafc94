"""Measure whether speedups are those of an idle card beside a policy that samples and trains on the same card.

    python -m benchmarks.shared_card [--shape 0.6b] [--count 16] [--repeats 3] [--out FILE.json]

The same candidates, judged anew each time: on the idle card, again on it (what repeating alone changes), beside sampling and
training that lease the card like them (`Pool.lease`), and beside both without leases (what the leases are for). A candidate's
figure is the median of its repetitions. The goal: with leases, within 1 % of the idle card.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import torch
from anyio.from_thread import BlockingPortal
from rich.console import Console

from benchmarks.corpus import Case, corpus
from benchmarks.drive import WIDTH, about, described, drive, table, write
from benchmarks.shapes import SHAPES, EndlessTokenizer, random_model
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.policy.hf import open_policy
from rlkernel.training.placement import place

ARMS = ("idle", "idle again", "turns", "no turns")
ROWS, COLUMNS, TRAJECTORIES, NEW_TOKENS = 4, 512, 64, 128
"""The rows and columns of a micro-batch of training; the completions in flight and their length."""
Leases = Callable[[], AbstractAsyncContextManager[None]]


@dataclass
class Load:
    """How much the policy and the trainer did meanwhile."""

    tokens: int = 0
    micro_batches: int = 0
    seconds: float = 0.0
    stop: bool = False
    waited: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        rates = {"sampled_tokens": self.tokens / self.seconds, "micro_batches": self.micro_batches / self.seconds}
        return {**{f"{name}_per_second": rate for name, rate in rates.items()}, "seconds": self.seconds, **self.waited}


@asynccontextmanager
async def loaded(model: Any, lease: Leases) -> AsyncIterator[Load]:
    """Completions without end and, beside them, forward and backward passes without end, each of both inside a `turn`."""
    load, trained = Load(), anyio.Event()
    ids = torch.randint(model.config.vocab_size, (ROWS, COLUMNS), device=model.device)

    def train(portal: BlockingPortal) -> None:
        while not load.stop:
            with portal.wrap_async_context_manager(lease()):
                model(input_ids=ids, labels=ids).loss.backward()
                model.zero_grad(set_to_none=True)
                if ids.is_cuda:
                    torch.cuda.synchronize()
            load.micro_batches += 1
            portal.call(trained.set)

    async def sample(seed: int) -> None:
        prompt = policy.encode_prompt(f"problem {seed}")
        while not load.stop:
            seed += TRAJECTORIES
            await policy.generate(prompt, seed)

    tokenizer = EndlessTokenizer(model.config.vocab_size)
    async with open_policy(model, tokenizer, max_new_tokens=NEW_TOKENS, slots=TRAJECTORIES, copy=True, lease=lease) as policy:
        # Compiles and captures before anything is measured.
        await policy.generate(policy.encode_prompt("first"), 0)
        async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, train, portal)
            for number in range(TRAJECTORIES):
                tasks.start_soon(sample, number)
            await trained.wait()
            tokens, batches, since = policy.tokens, load.micro_batches, time.perf_counter()
            try:
                yield load
            finally:
                load.stop = True
                load.seconds = time.perf_counter() - since
                load.micro_batches, load.tokens = load.micro_batches - batches, policy.tokens - tokens


async def speedups(pool: Pool, cases: Sequence[Case], repeats: int, arm: str) -> dict[str, float]:
    """The median speedup of each candidate. Its text says arm and repetition, so that no verdict is known before."""
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(repeats):
        fresh = [replace(case, code=f"{case.code}\n# {arm} {number}\n") for case in cases]
        for row in await drive(pool, fresh, f"{arm} {number + 1}/{repeats}"):
            if row.result is not None and row.result.speedup is not None:
                found[row.case.name].append(row.result.speedup)
    return {name: median(values) for name, values in found.items()}


async def measure(args: argparse.Namespace) -> dict[str, Any]:
    placement = place(args.device)
    cases = corpus(args.count, args.seed)
    result: dict[str, Any] = {"arms": {}, "loads": {}, "errors": {}}
    async with open_pool(device=placement.device, shared=placement.shared_uuid) as pool:
        result["machine"] = about(pool, {key: str(value) for key, value in vars(args).items()})
        placement.limit_memory(pool.config)
        await speedups(pool, cases, 1, "warming up")
        model = random_model(args.shape, "cuda" if placement.card else "cpu", torch.bfloat16 if placement.card else torch.float32)
        for arm in args.arms:
            before = pool.waited_seconds or (0.0, 0.0)
            try:
                if arm.startswith("idle"):
                    result["arms"][arm] = await speedups(pool, cases, args.repeats, arm)
                    continue
                async with loaded(model, pool.lease if arm == "turns" else nullcontext) as load:
                    result["arms"][arm] = await speedups(pool, cases, args.repeats, arm)
            except Exception as error:  # one arm's failure must not lose the others
                result["errors"][arm] = f"{type(error).__name__}: {error}"
                continue
            after = pool.waited_seconds or (0.0, 0.0)
            load.waited = {"seconds_candidates_waited": after[0] - before[0], "seconds_policy_waited": after[1] - before[1]}
            result["loads"][arm] = load.to_json()
    return result


def changes(result: dict[str, Any]) -> dict[str, list[float]]:
    """By arm, the speedup of each candidate divided by that on the idle card, minus 1."""
    idle = result["arms"].get("idle", {})
    return {
        arm: sorted(values[name] / idle[name] - 1 for name in values if name in idle)
        for arm, values in result["arms"].items()
        if arm != "idle"
    }


def report(result: dict[str, Any], console: Console) -> None:
    console.print(described(result["machine"]))
    for arm, load in result["loads"].items():
        console.print(f"{arm}: " + ", ".join(f"{name} {value:.1f}" for name, value in load.items()))
    for arm, error in result["errors"].items():
        console.print(f"{arm} failed: {error}")
    listed = table("Change of measured speedups against the idle card", "arm", "candidates", "median", "lowest", "highest")
    for arm, found in changes(result).items():
        if found:
            listed.add_row(arm, str(len(found)), *(f"{100 * value:+.2f} %" for value in (median(found), found[0], found[-1])))
    console.print(listed)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", default="0.6b", choices=SHAPES, help="of the policy")
    parser.add_argument("--count", type=int, default=16, help="candidates")
    parser.add_argument("--repeats", type=int, default=3, help="of each candidate and arm")
    parser.add_argument("--arms", nargs="+", default=ARMS, choices=ARMS)
    parser.add_argument("--device", default="cuda:0", help="cuda:N that torch uses first; cpu tries the script out")
    parser.add_argument("--seed", type=int, default=0, help="of the corpus")
    parser.add_argument("--out", type=Path, help="result file, JSON")
    args = parser.parse_args(argv)
    result = anyio.run(measure, args)
    write(args.out, {"benchmark": "shared_card", **result, "changes": changes(result)})
    report(result, Console(width=WIDTH))
    return 1 if result["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
