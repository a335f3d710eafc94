"""Where nothing takes a factor out of the step, GRPO's self-inclusion slows it down (a test of an explanation; the bias is that
of arXiv 2602.05885).

GRPO and TRLOO ended alike in runs with AdamW and clipped gradients, which was put down to both: they divide by the size of the
gradient, so that a factor of 1 - 1/N in all advantages is lost. That explanation can be refuted. Under plain gradient descent
without clipping the factor stays: with groups of 4 a step of Dr. GRPO, which does not divide, is three quarters of one of TRLOO.

Arms, all with groups of 4: `trloo_k4_sgd`, `dr_grpo_k4_sgd` and `grpo_k4_sgd`. They share a learning rate, which only the first
two should: their gradients differ by a factor alone. GRPO divides by the standard deviation, so its steps are longer.

Expected outcome: `trloo_k4_sgd` learns faster than `dr_grpo_k4_sgd` by what a learning rate of 4/3 gives. If both end alike here,
too, the factor does not matter, and the explanation by AdamW is not needed.

Cost: 3 arms, none shared. With the preset `h200`, half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.curves import PANELS, Panel

ARMS = arms.by_name(arms.SGD["trloo"], arms.SGD["dr_grpo"], arms.SGD["grpo"])
OURS = "not in the paper"
CLAIMS = (
    Claim("Without AdamW, the factor slows Dr. GRPO down", "trloo_k4_sgd", "dr_grpo_k4_sgd", "reward", OURS),
    Claim(
        "Without AdamW, Dr. GRPO ends farther from the oracle",
        "trloo_k4_sgd",
        "dr_grpo_k4_sgd",
        "oracle_fraction",
        OURS,
        margin=0.02,
    ),
    Claim(
        "The division by the deviation makes steps longer", "grpo_k4_sgd", "dr_grpo_k4_sgd", "train/grad_norm", OURS, margin=0.0
    ),
)
PANELS_HERE = (*PANELS[:3], Panel("Gradient norm", (("train/grad_norm", "-", "norm"),), False, log=True))
EXPERIMENT = arms.experiment("plain_descent", __doc__, ARMS, CLAIMS, PANELS_HERE)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
