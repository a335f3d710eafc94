"""Crediting the plan by speed and the code by correctness beats one reward for all tokens (HRD, arXiv 2510.17891).

An answer is a plan and then code. One reward for both blames a good plan for a slip in the code. HRD gives code tokens the
advantage of correctness, and plan tokens alpha times the advantage of speed.

Arms, all of one turn with GRPO's advantage and TritonRL's layered verification: `uniform_single_turn` credits all tokens with
the speed reward; `hrd_0.1_single_turn`, `hrd_0.5_single_turn` and `hrd_1_single_turn` with HRD at that alpha.

Expected outcome: HRD is more often correct; with small alpha plans move slowly, so that speed may rise less than with uniform
credit. The plans of the small policy are one line that decides between fusing and not, so that they carry the speed.

Seen on H200s, 2026-11-21: the opposite of the claim. HRD is more often correct at no alpha, and slower the smaller alpha is:
Fast@1.2 after 16 steps is 84 % with uniform credit, 72 % at alpha 1, 69 % at 0.5 and 55 % at 0.1. Correctness is learned at
nearly the same rate at alpha 1 (88 % against 89 %); what is missing there is speed's credit on the code: in the second half 8 %
of its answers are correct, spend at least 90 % of the time in their own kernel and are not fast (uniform: 1 %), and all 9 of
these that were kept as text launch blocks of 64, which no plan mentions. At alpha 0.1 it is the plans that move too slowly: 26 %
of the answers are correct with less than 90 % of the time in their own kernel (uniform: 8 %). A plan of this policy is one line
that its code follows in kind in 1,315 of 1,320 answers kept as text, so that a good plan is seldom blamed for a slip in the code,
which is what HRD repairs; and the same line is all that HRD lets speed teach, 7 tokens of 65. Models that reason for thousands of
tokens are the other case, which was not tried.

Cost: 4 arms, none shared. Half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.figure import PANELS, Panel

ARMS = arms.by_name(arms.UNIFORM, arms.HRD_01, arms.HRD_05, arms.HRD_1)
PAPER = "direction only: HRD above uniform credit on KernelBench levels 1 and 2, 8B model, one turn"
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
