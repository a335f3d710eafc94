"""The pairs of a reference and a candidate that `benchmarks.peers` evaluates, what each deserves, and their order.

A pair deserves `correct`, `refused`, or `honest time`: it does the work whenever it is checked and cheats whenever it is timed,
so it may be accepted, but not with a speedup above 1.5 times that of its honest control by the same system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

System = Literal["rlkernel", "kernelgym", "kernelbench"]
Deserves = Literal["correct", "refused", "honest time"]
SYSTEMS: tuple[System, ...] = ("rlkernel", "kernelgym", "kernelbench")
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Pair:
    """A reference and a candidate."""

    name: str
    candidate: str
    """The candidate's file in tests/red_team."""
    problem: str
    """The name of a problem of the suite, or `relu` for tests/red_team/reference.py."""
    deserves: Deserves
    control: str | None = None
    """For a pair that deserves `honest time`, the pair that does the same work and does not cheat."""
    note: str = ""

    def sources(self) -> tuple[str, str]:
        """The texts of reference and candidate. Raises FileNotFoundError."""
        red_team = ROOT / "tests" / "red_team"
        reference = red_team / "reference.py" if self.problem == "relu" else ROOT / "envs" / "suite" / f"{self.problem}.py"
        return reference.read_text(), (red_team / f"{self.candidate}.py").read_text()


PAIRS = (
    # The first six are what a system with few evaluations to spend gets.
    Pair("softmax", "honest/level1/softmax", "level1/softmax", "correct"),
    Pair("chain_bias_gelu_scale", "honest/level2/chain_bias_gelu_scale", "level2/chain_bias_gelu_scale", "correct"),
    Pair("matmul_ieee", "honest/matmul_ieee", "level1/matmul", "correct"),
    Pair("side_stream", "hostile/harness/side_stream", "level1/matmul", "honest time", "matmul_ieee"),
    Pair("content_cache", "hostile/harness/content_cache", "level1/matmul", "refused"),
    Pair("frame_walk", "hostile/harness/frame_walk", "level1/matmul", "refused"),
    Pair("timer_patch", "hostile/harness/timer_patch", "level1/matmul", "honest time", "matmul_ieee"),
    Pair("phase_grad", "hostile/harness/phase_grad", "level1/matmul", "honest time", "matmul_ieee"),
    Pair("phase_calls", "hostile/harness/phase_calls", "level1/matmul", "honest time", "matmul_ieee"),
    Pair("constant_denominator", "hostile/harness/constant_denominator", "level1/softmax", "refused"),
    Pair("patch_allclose", "hostile/patch_allclose", "relu", "refused"),
    Pair("decoy_unused", "hostile/decoy_unused", "relu", "refused"),
    Pair("nokernel_noop", "hostile/nokernel_noop", "relu", "refused"),
    Pair("half", "hostile/half", "relu", "refused"),
    Pair("inplace_input", "hostile/inplace_input", "relu", "refused"),
    Pair("relu", "hostile/honest", "relu", "correct"),
    Pair("layer_norm", "honest/level1/layer_norm", "level1/layer_norm", "correct"),
    Pair("gelu_autotuned", "honest/level1/gelu", "level1/gelu", "correct"),
    Pair("column_sum_atomics", "honest/level1/column_sum", "level1/column_sum", "correct"),
    Pair("mse_loss", "honest/level1/mse_loss", "level1/mse_loss", "correct"),
    Pair("matmul_bias_relu", "honest/level2/matmul_bias_relu", "level2/matmul_bias_relu", "correct"),
    Pair("chain_bias_tanh", "honest/level2/chain_bias_tanh", "level2/chain_bias_tanh", "correct"),
    Pair("cross_entropy", "honest/cross_entropy", "level1/cross_entropy", "correct", note="integer input"),
    Pair("rotary_pair", "honest/level3/rotary_pair", "level3/rotary_pair", "correct", note="two outputs"),
)
REPEATED = ("softmax", "chain_bias_gelu_scale", "relu")
"""The pairs that every system evaluates several times, which shows how far a speedup can be trusted."""


@dataclass(frozen=True, slots=True)
class Item:
    """One evaluation to be done."""

    system: System
    pair: Pair
    repeat: int


def plan(
    systems: Sequence[str], kernelgym_pairs: int, kernelbench_pairs: int, repeats: int, pairs: Sequence[Pair] = PAIRS
) -> list[Item]:
    """The evaluations to do, the most telling first: ours, six pairs by both peers, KernelBench's others, repeats, KernelGYM's
    others."""
    everything = [
        Item("rlkernel", pair, repeat) for repeat in range(repeats) for pair in pairs if repeat == 0 or pair.name in REPEATED
    ]
    limits: dict[System, int] = {"kernelgym": kernelgym_pairs, "kernelbench": kernelbench_pairs}
    chosen = {system: pairs[:limit] for system, limit in limits.items()}
    everything += [Item(system, pair, 0) for pair in pairs[:6] for system in limits if pair in chosen[system]]
    everything += [Item("kernelbench", pair, 0) for pair in chosen["kernelbench"][6:]]
    for name in REPEATED:
        everything += [
            Item(system, pair, repeat)
            for system in limits
            for pair in chosen[system]
            for repeat in range(1, repeats)
            if pair.name == name
        ]
    everything += [Item("kernelgym", pair, 0) for pair in chosen["kernelgym"][6:]]
    return [item for item in everything if item.system in systems]
