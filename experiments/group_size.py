"""GRPO's self-inclusion costs most in small groups, and in groups that shrink from turn to turn (arXiv 2602.05885).

A sample that is part of its own baseline shrinks the expected gradient by 1 - 1/N: by a quarter for N = 4, by a sixteenth for N =
16. A common factor is a smaller learning rate, which an optimiser such as AdamW takes out again. What it cannot take out is a
factor that differs between turns: where trajectories end once they are fast, N falls with the turn.

Arms: `grpo_k4`, `trloo_k4`, `rloo_k4` and `dr_grpo_k4` with 4 trajectories per prompt; `grpo_k16`, `trloo_k16`, `rloo_k16` and
`dr_grpo_k16` with 16, and a quarter of the prompts, so that a step sees as many answers. `grpo_stop` and `trloo_stop` have groups
of 8 and end a trajectory after a turn that is 1.2 times as fast as the reference. `grpo_single_turn_prompts` has one turn and as
many prompts as `grpo`, so that its steps see a third of the answers; `grpo_single_turn` of `multi_turn_estimators` has as many
answers.

Expected outcome: `trloo` is above `grpo` at 4 and with early ends, and not at 16. `dr_grpo` differs from `grpo` in the division
alone, and from `trloo` in a factor alone: where it equals `trloo`, the division is what matters. `rloo` has one baseline for a
whole trajectory. Several turns beat one at equal prompts by more than at equal answers, which cost three times as much.

Cost: 12 arms; `grpo` is shared. With the preset `h200`, half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim

ARMS = arms.by_name(
    *arms.K4.values(), *arms.K16.values(), arms.GRPO_STOP, arms.TRLOO_STOP, arms.GRPO_ARM, arms.GRPO_SINGLE_TURN_PROMPTS
)
FACTOR = "direction only: the bias of self-inclusion is 1 - 1/N, so it fades in large groups"
TURNS = "KernelBench level 2: multi-turn above single-turn training; no number of that curve is public here"
OURS = "not in the paper"
CLAIMS = (
    Claim("In groups of 4, TRLOO ends above GRPO", "trloo_k4", "grpo_k4", "fast_1.2", FACTOR, margin=0.02),
    Claim("In groups of 4, TRLOO is nearer the oracle", "trloo_k4", "grpo_k4", "oracle_fraction", FACTOR, margin=0.02),
    Claim("In groups of 16, TRLOO is nearer the oracle", "trloo_k16", "grpo_k16", "oracle_fraction", FACTOR, margin=0.02),
    Claim("With early ends, TRLOO is nearer the oracle", "trloo_stop", "grpo_stop", "oracle_fraction", FACTOR, margin=0.02),
    Claim("In groups of 4, the factor alone matters", "trloo_k4", "dr_grpo_k4", "oracle_fraction", OURS, margin=0.02),
    Claim("In groups of 4, the division matters", "dr_grpo_k4", "grpo_k4", "oracle_fraction", OURS, margin=0.02),
    Claim("In groups of 16, the factor alone matters", "trloo_k16", "dr_grpo_k16", "oracle_fraction", OURS, margin=0.02),
    Claim(
        "In groups of 4, a baseline per turn beats one per trajectory",
        "trloo_k4",
        "rloo_k4",
        "oracle_fraction",
        OURS,
        margin=0.02,
    ),
    Claim(
        "In groups of 16, a baseline per turn beats one per trajectory",
        "trloo_k16",
        "rloo_k16",
        "oracle_fraction",
        OURS,
        margin=0.02,
    ),
    Claim("At equal prompts, several turns beat one", "grpo", "grpo_single_turn_prompts", "fast_1.2", TURNS),
    Claim("Larger groups of fewer problems are better", "trloo_k16", "trloo_k4", "oracle_fraction", OURS, margin=0.02),
)
EXPERIMENT = arms.experiment("group_size", __doc__, ARMS, CLAIMS)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
