"""Crediting the plan by speed and the code by correctness beats one reward for all tokens (HRD, arXiv 2510.17891).

An answer is a plan and then code. One reward for both blames a good plan for a slip in the code. HRD gives code tokens the
advantage of correctness, and plan tokens alpha times the advantage of speed.

Arms, all of one turn with GRPO's advantage and TritonRL's layered verification: `uniform_single_turn` credits all tokens with the
speed reward; `hrd_0.1_single_turn`, `hrd_0.5_single_turn` and `hrd_1_single_turn` with HRD at that alpha.

Expected outcome: HRD is more often correct. With small alpha, plans move slowly, so speed may rise less than with uniform credit.
The plans are one line. Those of chains say whether to fuse; those of the world name every stage with its knobs, so that the code
has nothing left to choose. There a larger alpha should be faster.

Cost: 4 arms, none shared. With the preset `h200`, half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.curves import PANELS, Panel

ARMS = arms.by_name(arms.UNIFORM, arms.HRD_01, arms.HRD_05, arms.HRD_1)
PAPER = "direction only: HRD above uniform credit on KernelBench levels 1 and 2, 8B model, one turn"
OURS = "not in the paper: alpha weighs the plan"
CLAIMS = (
    *(
        Claim(
            f"HRD at alpha {alpha} is more often correct",
            f"hrd_{alpha}_single_turn",
            "uniform_single_turn",
            "correct_rate",
            PAPER,
        )
        for alpha in ("0.1", "0.5", "1")
    ),
    *(
        Claim(f"HRD at alpha {alpha} is faster", f"hrd_{alpha}_single_turn", "uniform_single_turn", "fast_1.2", PAPER)
        for alpha in ("0.1", "0.5", "1")
    ),
    Claim("More weight on the plan is faster", "hrd_1_single_turn", "hrd_0.1_single_turn", "fast_1.2", OURS),
    Claim(
        "More weight on the plan ends nearer the oracle",
        "hrd_1_single_turn",
        "hrd_0.1_single_turn",
        "oracle_fraction",
        OURS,
        margin=0.02,
    ),
)
PANELS_HERE = (
    PANELS[0],
    Panel("Correct", (("correct_rate", "-", "correct"),), True),
    Panel("Fast@1 and Fast@1.2", (("fast_1", "-", "at 1"), ("fast_1.2", "--", "at 1.2")), True),
    PANELS[3],
)
EXPERIMENT = arms.experiment("hierarchical_reward", __doc__, ARMS, CLAIMS, PANELS_HERE)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
