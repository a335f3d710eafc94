"""The bias of group baselines, exactly: TRLOO is ahead of turn-level GRPO where trajectories end early (arXiv 2602.05885).

A toy that can be summed over all groups of rollouts (`experiments/two_turns.py`): turn 1 stops with a kernel that works, worth 1,
or goes on; turn 2 then fuses, worth 2, or breaks it, worth 0. At the start 80 % stop and 30 % of the others fuse, so that going
on pays only once fusing has been learned. Few rollouts reach turn 2, and its groups are small.

Arms: GRPO with and without the standard deviation (Dr. GRPO), TRLOO, TRLOO that does not train a lone sample, and RLOO. All
take steps of the same length, so that only directions are compared.

Expected outcome: without the standard deviation, the gradient of GRPO is too small by 1/N_t, most of all in the second turn,
where N_t is small, so that its direction is off, too. With it, the direction is further off, and that falls slowly with N; its
length has then no unit of reward, so that only the angle says something. GRPO learns to stop before it has learned to fuse.
TRLOO follows the true gradient.
What is unbiased is not yet quiet: RLOO is unbiased, too, and slightly ahead of TRLOO here when the gradient is sampled, because
a lone sample of TRLOO has no baseline. The toy and its start are chosen to show the mechanism; over 64 random toys no difference
is resolved (TRLOO over GRPO: +0.15 % +- 0.52 % of the best reward). All sampled steps have one length too: E[g/|g|] is not the
gradient's direction, not even for TRLOO, and GRPO's sampled curve is a mixture of runs that learn to fuse (one in five) and runs
that do not.

Cost: one to two minutes on one core. Writes `figure.png` and `numbers.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

from algorithms.dr_grpo import DrGRPO
from algorithms.grpo import GRPO
from algorithms.rloo import RLOO
from algorithms.trloo import TRLOO
from experiments.two_turns import Gradient, TwoTurns, ascend, moments, sampled_gradient
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import exit_status
from rlkernel.interfaces import Advantage
from rlkernel.report.figure import COLOURS, STYLE

ARMS: dict[str, Advantage] = {
    "GRPO": GRPO(),
    "Dr. GRPO": DrGRPO(),
    "TRLOO": TRLOO(),
    "TRLOO, lone sample dropped": TRLOO(singleton="zero"),
    "RLOO": RLOO(),
}
N = 4
"""The number of rollouts of a group."""
SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
BATCH = 8
"""The number of groups per sampled step."""
STEPS, LENGTH = 150, 0.1
RUNS, RANDOM_TOYS = 200, 64


@dataclass(frozen=True)
class Flags:
    """Measure the bias of group baselines in a toy that can be summed exactly."""

    list: bool = False
    """Show the estimators that are compared, and stop."""
    out: Path = Path("runs/estimator_bias")
    """Directory of the figure and the numbers."""


def example(replicas: int = 1) -> tuple[TwoTurns, torch.Tensor]:
    """The toy of the docstring and its logits_RP at the start: one path, two endings."""
    toy = TwoTurns(
        torch.tensor([1.0, 0.0], dtype=torch.float64).expand(replicas, 2),
        torch.tensor([[2.0, 0.0]], dtype=torch.float64).expand(replicas, 1, 2),
    )
    start = torch.tensor([0.8, 0.2, 0.3, 0.7], dtype=torch.float64).log()
    return toy, start.expand(replicas, 4)


def random_toys(generator: torch.Generator) -> tuple[TwoTurns, torch.Tensor]:
    """Two paths of two endings; rewards uniform in 0 to 1 (stop), 0 to 0.5 (go on) and 0 to 2 (ending), normal logits, and a
    leaning to stop."""
    uniform = torch.rand(RANDOM_TOYS, 7, generator=generator, dtype=torch.float64)
    first_RA = uniform[:, :3] * torch.tensor([1.0, 0.5, 0.5], dtype=torch.float64)
    logits_RP = torch.randn(RANDOM_TOYS, 7, generator=generator, dtype=torch.float64)
    logits_RP[:, 0] += 1.5
    return TwoTurns(first_RA, 2 * uniform[:, 3:].reshape(-1, 2, 2)), logits_RP


def in_units_of_reward(advantage: Advantage) -> bool:
    """Whether doubled returns have doubled advantages. Where they have not, as after a division by the standard deviation, the
    reward's unit decides how long the gradient is, and its length says nothing."""
    returns_1K1 = torch.tensor([3.0, 1.0, 0.0], dtype=torch.float64)[None, :, None]
    valid_1K1 = torch.ones(1, 3, 1, dtype=torch.bool)
    return torch.allclose(advantage(2 * returns_1K1, valid_1K1), 2 * advantage(returns_1K1, valid_1K1))


def bias(advantage: Advantage, size: int, unit: float = 1.0) -> dict[str, float | None]:
    """The estimators at the start of the example, with rewards times `unit`: `angle` of the mean and the true gradient in
    degrees, `bias`
    |mean - true| / |true| and `noise` spread / |true|, both None for an estimator that is not `in_units_of_reward`."""
    toy, start = example()
    toy = TwoTurns(unit * toy.first_RA, unit * toy.second_RWE)
    true, found = toy.true_gradient(start)[0], moments(toy, start, advantage, size)
    mean = found.mean_RP[0]
    cosine = float(torch.dot(mean, true) / (mean.norm() * true.norm()))
    comparable = in_units_of_reward(advantage)
    return {
        "bias": float((mean - true).norm() / true.norm()) if comparable else None,
        "angle": float(torch.rad2deg(torch.acos(torch.tensor(min(cosine, 1.0), dtype=torch.float64)))),
        "noise": float(found.spread_R[0] / true.norm()) if comparable else None,
    }


def study() -> dict[str, Any]:
    """All numbers of the figure and the table, by arm. Says on standard error which arm it is at."""
    toy, start = example()
    many, starts = example(RUNS)
    randoms, random_starts = random_toys(torch.Generator().manual_seed(0))
    found: dict[str, Any] = {
        "true gradient": {"exact": ascend(toy, start, toy.true_gradient, STEPS, LENGTH)[0].tolist()},
    }
    for name, advantage in ARMS.items():
        print(name, file=sys.stderr, flush=True)
        sampled = sampled_gradient(many, advantage, N, BATCH, torch.Generator().manual_seed(0))
        final_R = ascend(randoms, random_starts, _mean(randoms, advantage), STEPS, LENGTH)[:, -1] / randoms.best()
        found[name] = {
            "exact": ascend(toy, start, _mean(toy, advantage), STEPS, LENGTH)[0].tolist(),
            "sampled": ascend(many, starts, sampled, STEPS, LENGTH).mean(0).tolist(),
            "by_size": {size: bias(advantage, size) for size in SIZES},
            "random": float(final_R.mean()),
        }
    return found


def _mean(toy: TwoTurns, advantage: Advantage) -> Gradient:
    return lambda logits_RP: moments(toy, logits_RP, advantage, N).mean_RP


def draw(found: dict[str, Any], path: Path) -> None:
    """Write a PNG of 1500 x 1080 pixels."""
    colour = dict(zip(ARMS, COLOURS, strict=False))
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(10, 7.2), layout="constrained")
        for name in ARMS:
            style = {"color": colour[name], "lw": 2.0, "ls": "--" if name == "RLOO" else "-", "label": name}
            axes[0, 0].plot(found[name]["exact"], **style)
            axes[0, 1].plot(found[name]["sampled"], **style)
            for axis, key in ((axes[1, 0], "bias"), (axes[1, 1], "angle")):
                values = [found[name]["by_size"][size][key] for size in SIZES]
                if None not in values:
                    axis.plot(SIZES, values, marker="o", ms=4, **style)
        axes[0, 0].plot(found["true gradient"]["exact"], color="black", lw=1, ls=":", label="true gradient")
        _label(axes[0, 0], f"Reward, exact gradient, N = {N}", "step", "expected reward")
        _label(axes[0, 1], f"Reward, sampled: {BATCH} groups of {N}", "step", f"mean over {RUNS} runs")
        _label(axes[1, 0], "Bias at the start (GRPO: no unit of reward)", "group size N", "|mean - true| / |true|")
        _label(axes[1, 1], "Angle to the true gradient", "group size N", "degrees")
        for axis in axes[1]:
            axis.set_xscale("log", base=2)
            axis.set_xticks(SIZES, [str(size) for size in SIZES])
            axis.minorticks_off()
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _label(axis: Axes, title: str, x: str, y: str) -> None:
    axis.set_title(title)
    axis.set_xlabel(x)
    axis.set_ylabel(y)


def print_table(found: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False)
    for header in ("arm", "bias", "angle", "noise", "reward", "sampled", "random toys"):
        table.add_column(header, justify="left" if header == "arm" else "right")
    for name in ARMS:
        row, start = found[name], found[name]["by_size"][N]
        table.add_row(
            name,
            "-" if start["bias"] is None else f"{start['bias']:.3f}",
            f"{start['angle']:.1f}°",
            "-" if start["noise"] is None else f"{start['noise']:.2f}",
            f"{row['exact'][-1]:.2f}",
            f"{row['sampled'][-1]:.2f}",
            f"{row['random']:.1%}",
        )
    console = Console(width=100)
    console.print(
        f"at the start, N = {N}: bias and noise relative to the true gradient; reward after {STEPS} steps", style="italic"
    )
    console.print(table)
    console.print("-: advantages that do not scale with the reward give the gradient a length without its unit")
    console.print(
        f"random toys: share of the best reward, mean of {RANDOM_TOYS}, exact gradient; differences here are not resolved"
    )


def main(argv: Sequence[str]) -> int:
    def run() -> int:
        flags = parse_flags(Flags(), list(argv), "python -m experiments.estimator_bias")
        if flags.list:
            print("\n".join(f"{name}: {advantage}" for name, advantage in ARMS.items()))
            return 0
        found = study()
        flags.out.mkdir(parents=True, exist_ok=True)
        (flags.out / "numbers.json").write_text(json.dumps(found, indent=1) + "\n")
        draw(found, flags.out / "figure.png")
        print_table(found)
        print(f"figure: {flags.out / 'figure.png'}")
        return 0

    return exit_status(run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
