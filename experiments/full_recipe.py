"""The recipe of Dr. Kernel, one ingredient after the other: GRPO, TRLOO, + MRS, + PR, + PRS (arXiv 2602.05885).

Arms: `grpo`, `trloo`, `trloo_mrs`, `trloo_mrs_pr`, `trloo_mrs_pr_prs`; each adds one thing to the one before.

Expected outcome: Fast@1.2 rises from row to row in the paper. In this miniature, single steps are likely too small to be told
apart with three seeds; the first and the last arm should differ. On the CPU, training samples from the weights that it updates,
in equal precision. MRS then rejects nothing, and its arm repeats the one before.

Cost: 5 arms, all shared with `multi_turn_estimators` and `lazy_optimisation`. With the preset `h200`, half
a minute per run on an H200.
"""

from __future__ import annotations

import sys
from itertools import pairwise

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim

ARMS = arms.by_name(arms.GRPO_ARM, arms.TRLOO_ARM, arms.MRS_ARM, arms.MRS_PR, arms.MRS_PR_PRS)
PAPER = "Dr. Kernel-14B, KernelBench level 2: Fast@1 49.2, Fast@1.2 25.6 at the end of the recipe"
CLAIMS = (
    *(
        Claim(f"{after} is above {before} in Fast@1.2 on the first turn", after, before, "fast_1.2_turn_1", PAPER)
        for before, after in pairwise(ARMS)
    ),
    Claim("The whole recipe is above GRPO in Fast@1.2 on the first turn", "trloo_mrs_pr_prs", "grpo", "fast_1.2_turn_1", PAPER),
    Claim("The whole recipe is above GRPO in coverage", "trloo_mrs_pr_prs", "grpo", "coverage", PAPER),
)
EXPERIMENT = arms.experiment("full_recipe", __doc__, ARMS, CLAIMS)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
