"""The bias of corrections, exactly: rollouts from 8-bit weights that are two steps old, against the true gradient.

A toy that can be summed over all groups of rollouts (`experiments/two_turns.py`), in 64 random instances. Its logits are a matrix
times a vector. The rollouts come from a policy that is off in up to two ways: its matrix is that of two gradient steps before
(age 2), and it is rounded to eight bits, row by row, as the engine that samples rounds weights (`rollout_dtype="float8"`). In the
last gap, rollouts span an update, as in-flight refresh has them (`refresh_tokens`): turn 1 has age 2, and turn 2 has age 1.

Arms: no correction; TIS by tokens, by trajectories truncated at 2, and by trajectories without bounds; MIS by tokens and by
trajectories; MRS with the paper's bounds of 0.1 % and with wider ones. The advantage is TRLOO, which is unbiased on policy, so
that all of the error is that of the correction.

`bias` is |mean - true| / |true| with N trajectories as the denominator, `angle` that between both in degrees, `noise` the spread
of one group's estimate over |true|, and `kept` the share of turns with a weight above 0. Each is a mean over the instances with
its 95 % interval.

Expected outcome: TIS by trajectories without bounds has no bias, to the digits of the arithmetic, and the most noise of those
that weigh. Truncation buys less noise with some bias. A token's own ratio says nothing of the turn before and of the return after
it: TIS by tokens halves the error. Eight bits are a small gap beside two large steps. MRS drops nearly everything at age 2, and
what it keeps points elsewhere; where nothing is kept, the angle counts as 90 degrees. Rollouts that span an update have less bias
than rollouts that are as old throughout, whatever weighs them, and none with TIS by trajectories: each turn's ratio is to its
own weights.

Cost: seconds on one core. Writes `numbers.json`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from algorithms.mis import MIS
from algorithms.mrs import MRS
from algorithms.tis import TIS
from algorithms.trloo import TRLOO
from experiments.estimator_bias import random_toys
from experiments.two_turns import TwoTurns, moments
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import exit_status
from rlkernel.interfaces import Correction
from rlkernel.policy.replica import rounded
from rlkernel.report.terminal import COLUMNS
from rlkernel.statistics import Interval, student_interval

ARMS: Mapping[str, Correction | None] = {
    "nothing": None,
    "TIS, tokens, at most 2": TIS(),
    "TIS, trajectories, at most 2": TIS("sequence"),
    "TIS, trajectories": TIS("sequence", high=math.inf),
    "MIS, tokens, 0.5 to 5": MIS(),
    "MIS, trajectories, 0.5 to 2": MIS("sequence", high=2.0),
    "MRS, 0.999 to 1.001": MRS(),
    "MRS, 0.9 to 1.1": MRS(low=0.9, high=1.1),
}


@dataclass(frozen=True)
class Gap:
    """How the policy that samples is off."""

    age: int = 0
    """Gradient steps between its weights and those in training."""
    eight_bits: bool = False
    """Whether its weights are rounded."""
    refreshed: int = 0
    """Steps by which the weights of turn 2 are newer than those of turn 1, at most `age`."""


GAPS: Mapping[str, Gap] = {
    "8 bits": Gap(eight_bits=True),
    "age 2": Gap(2),
    "8 bits and age 2": Gap(2, eight_bits=True),
    "8 bits and age 2, then 1": Gap(2, eight_bits=True, refreshed=1),
}
COLUMNS_MEAN: Mapping[str, str] = {
    "bias": "|mean gradient - true gradient| / |true gradient|",
    "angle": "between the mean and the true gradient, in degrees; 90 where nothing is kept",
    "noise": "the spread of one group's gradient / |true gradient|",
    "kept": "the share of turns with a weight above 0",
}
"""What each column of the tables means."""
N = 4
"""The number of rollouts of a group."""
LENGTH, WIDTH = 0.5, 32
"""The length of a gradient step in the space of logits, and the length of the vector that the matrix multiplies."""


@dataclass(frozen=True)
class Flags:
    """Measure the bias of corrections in a toy that can be summed exactly."""

    out: Path = Path("runs/off_policy_bias")
    """Directory of the numbers."""


def policies(gap: Gap) -> tuple[TwoTurns, torch.Tensor, torch.Tensor]:
    """The toys, the logits_RP of the policies in training, and those of the policies that sampled."""
    generator = torch.Generator().manual_seed(0)
    toy, logits_RP = random_toys(generator)
    R, P = logits_RP.shape
    input_RI = torch.randn(R, WIDTH, generator=generator, dtype=torch.float64)
    weight_RPI = torch.randn(R, P, WIDTH, generator=generator, dtype=torch.float64) / math.sqrt(WIDTH)
    # The matrix that gives exactly these logits, with the least change to the random one.
    along_RI = input_RI / input_RI.square().sum(-1, keepdim=True)
    weight_RPI += (logits_RP - torch.einsum("rpi,ri->rp", weight_RPI, input_RI))[..., None] * along_RI[:, None]
    sampling_RPI = weight_RPI.clone()
    for step in range(gap.age):
        gradient_RP = toy.true_gradient(logits_RP)
        moved_RP = LENGTH * gradient_RP / gradient_RP.norm(dim=-1, keepdim=True)
        logits_RP = logits_RP + moved_RP
        if step < gap.refreshed:
            second = slice(1 + toy.paths, None)
            sampling_RPI[:, second] += moved_RP[:, second, None] * along_RI[:, None]
    if gap.eight_bits:
        sampling_RPI = torch.stack([rounded(weight_PI, torch.float8_e4m3fn) for weight_PI in sampling_RPI])
    return toy, logits_RP, torch.einsum("rpi,ri->rp", sampling_RPI, input_RI)


def bias(correction: Correction | None, gap: Gap) -> dict[str, Interval]:
    """`bias`, `angle`, `noise` and `kept` of a correction."""
    toy, train_RP, sampling_RP = policies(gap)
    true_RP = toy.true_gradient(train_RP)
    found = moments(toy, train_RP, TRLOO(), N, sampling_RP=sampling_RP, correction=correction)
    cosine_R = (found.mean_RP * true_RP).sum(-1) / (found.mean_RP.norm(dim=-1) * true_RP.norm(dim=-1)).clamp(min=1e-300)
    values = {
        "bias": (found.mean_RP - true_RP).norm(dim=-1) / true_RP.norm(dim=-1),
        "angle": torch.rad2deg(torch.acos(cosine_R.clamp(-1, 1))),
        "noise": found.spread_R / true_RP.norm(dim=-1),
        "kept": found.kept_R,
    }
    intervals = {name: student_interval(value_R.tolist()) for name, value_R in values.items()}
    return {name: interval for name, interval in intervals.items() if interval is not None}


def study() -> dict[str, dict[str, dict[str, Interval]]]:
    """Gap -> arm -> number."""
    return {name: {arm: bias(correction, gap) for arm, correction in ARMS.items()} for name, gap in GAPS.items()}


def print_table(found: Mapping[str, Mapping[str, Mapping[str, Interval]]]) -> None:
    """Print a table for each gap, and what its columns mean, in at most 100 columns."""
    console = Console(width=COLUMNS, highlight=False)
    for gap, by_arm in found.items():
        table = Table(title=gap, title_justify="left", box=None, pad_edge=False)
        table.add_column("correction")
        for header in COLUMNS_MEAN:
            table.add_column(header, justify="right")
        for arm, numbers in by_arm.items():
            table.add_row(arm, *(f"{one.mean:.3f} ± {(one.high - one.low) / 2:.3f}" for one in numbers.values()))
        console.print(table)
        console.print()
    for header, meaning in COLUMNS_MEAN.items():
        console.print(f"{header}: {meaning}")
    console.print("Each is a mean over 64 random toys, ± half of its 95 % interval.")


def main(argv: Sequence[str]) -> int:
    def run() -> int:
        flags = parse_flags(Flags(), list(argv), "python -m experiments.off_policy_bias")
        found = study()
        flags.out.mkdir(parents=True, exist_ok=True)
        dumped = {
            gap: {arm: {name: asdict(one) for name, one in numbers.items()} for arm, numbers in arms.items()}
            for gap, arms in found.items()
        }
        (flags.out / "numbers.json").write_text(json.dumps(dumped, indent=1) + "\n")
        print_table(found)
        return 0

    return exit_status(run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
