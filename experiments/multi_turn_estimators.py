"""TRLOO is above GRPO in multi-turn reinforcement learning on Triton kernels, and several turns above one (arXiv 2602.05885).

GRPO's baseline contains the sample that it judges, which shrinks the expected gradient by 1 - 1/N, and its division by the
group's standard deviation makes that bias depend on the sample. TRLOO leaves the sample out of its own baseline and does not
divide. In several turns the groups get smaller and more alike, so the difference should grow with the turns.

Arms: `grpo`, `rloo` (leave-one-out over whole trajectories) and `trloo` differ in the advantage alone. Equal seeds see the same
problems in the same order and start from the same weights. `grpo_single_turn` trains first answers only. It has three times the
prompts, so that a step sees as many answers, and is measured on three turns like the others.

Expected outcome: the validation reward of all arms rises clearly, `trloo` ends above `grpo`, and the rate of hacks falls. On the
paper's 8B and 14B models the gap is a few points of Fast@1.2. The small policy and few steps make it uncertain here. `rloo` has
no bias either and may be as good; `experiments/estimator_bias.py` shows that on a toy.

Cost: 4 arms. At the cpu preset a run has 6 steps of 96 answers and 3 validations of 78. One takes about 3 minutes on 2 cores
that other work shares; later runs reuse verdicts of earlier ones. With the preset `h200`, half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim

ARMS = arms.by_name(arms.GRPO_ARM, arms.TRLOO_ARM, arms.RLOO_ARM, arms.GRPO_SINGLE_TURN)
ABOVE = "KernelBench level 2: TRLOO above GRPO during training; no number of that curve is public here"
SEVERAL = "KernelBench level 2: multi-turn above single-turn training; no number of that curve is public here"
CLAIMS = (
    Claim("TRLOO ends above GRPO in reward", "trloo", "grpo", "reward", ABOVE),
    Claim("TRLOO ends above GRPO in Fast@1", "trloo", "grpo", "fast_1", ABOVE),
    Claim("TRLOO ends above GRPO in Fast@1.2 on the first turn", "trloo", "grpo", "fast_1.2_turn_1", ABOVE),
    Claim("TRLOO ends nearer the oracle than GRPO", "trloo", "grpo", "oracle_fraction", ABOVE, margin=0.02),
    Claim("TRLOO ends above RLOO in reward", "trloo", "rloo", "reward", "not in the paper"),
    Claim("Training on several turns beats training on one, best of three", "grpo", "grpo_single_turn", "fast_1.2", SEVERAL),
    Claim("With TRLOO, several turns beat one, best of three", "trloo", "grpo_single_turn", "fast_1.2", SEVERAL),
    Claim("With TRLOO, several turns beat one in the last of three", "trloo", "grpo_single_turn", "fast_1.2_last", SEVERAL),
)
EXPERIMENT = arms.experiment("multi_turn_estimators", __doc__, ARMS, CLAIMS)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
