"""PR and PRS are both needed to lift Fast@1.2: rewards alone are satisfied by lazy kernels (arXiv 2602.05885).

A lazy kernel is correct and does a trivial part of the work. The profiling-based reward (PR) pays for the share of device time in
one's own kernels; profiling-based rejection sampling (PRS) keeps correct turns of low share from training.

Arms: `trloo_mrs` is the base. `trloo_mrs_pr` adds PR, `trloo_mrs_prs` adds PRS, and `trloo_mrs_pr_prs` adds both. Rewards of arms
with PR contain a bonus, so arms are compared by Fast@p, coverage and laziness, not by reward. `capped_mrs` and `capped_mrs_prs`
test an explanation. Where speed separates lazy kernels from others, coverage is high anyway, and PRS has nothing to reject. In
these two arms speed beyond the reference pays nothing, so a lazy kernel is worth as much as any, and coverage stays as low as it
starts.

Expected outcome: in the base, Fast@1 rises and Fast@1.2 saturates earlier. Both additions raise coverage and lower the lazy rate.
The small policy's lazy kernels are about as fast as the reference. Speed alone already separates them from fused ones, so the
effect may be smaller than in the paper. Without pay for speed, PRS is all that stands against laziness: if it changes nothing
there either, high coverage does not explain why it did nothing before.

Cost: 6 arms, three shared with `full_recipe`. With the preset `h200`, half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.curves import Panel

ARMS = arms.by_name(arms.MRS_ARM, arms.MRS_PR, arms.MRS_PRS, arms.MRS_PR_PRS, arms.CAPPED_MRS, arms.CAPPED_MRS_PRS)
PAPER = "Dr. Kernel-14B with both, KernelBench level 2: Fast@1 49.2, Fast@1.2 25.6; without them Fast@1.2 saturates early"
OURS = "not in the paper: a test of an explanation"
CLAIMS = (
    Claim("PR raises coverage", "trloo_mrs_pr", "trloo_mrs", "coverage", PAPER),
    Claim("PRS raises coverage", "trloo_mrs_prs", "trloo_mrs", "coverage", PAPER),
    Claim("PR and PRS together lower the lazy rate", "trloo_mrs_pr_prs", "trloo_mrs", "lazy_rate", PAPER, higher=False),
    Claim("PR and PRS together raise Fast@1.2 on the first turn", "trloo_mrs_pr_prs", "trloo_mrs", "fast_1.2_turn_1", PAPER),
    Claim("PR and PRS together end nearer the oracle", "trloo_mrs_pr_prs", "trloo_mrs", "oracle_fraction", PAPER, margin=0.02),
    Claim("Both raise Fast@1.2 on the first turn above PR alone", "trloo_mrs_pr_prs", "trloo_mrs_pr", "fast_1.2_turn_1", PAPER),
    Claim("Both raise Fast@1.2 on the first turn above PRS alone", "trloo_mrs_pr_prs", "trloo_mrs_prs", "fast_1.2_turn_1", PAPER),
    Claim("Where speed pays nothing, PRS raises coverage", "capped_mrs_prs", "capped_mrs", "coverage", OURS),
    Claim("Where speed pays nothing, PRS lowers the lazy rate", "capped_mrs_prs", "capped_mrs", "lazy_rate", OURS, higher=False),
    Claim(
        "Where speed pays nothing, PRS raises Fast@1.2 on the first turn", "capped_mrs_prs", "capped_mrs", "fast_1.2_turn_1", OURS
    ),
)
PANELS_HERE = (
    Panel("Fast@1", (("fast_1", "-", "any turn"), ("fast_1_turn_1", "--", "first turn")), True),
    Panel("Fast@1.2", (("fast_1.2", "-", "any turn"), ("fast_1.2_turn_1", "--", "first turn")), True),
    Panel("Coverage, 0 where not correct", (("coverage", "-", "coverage"),), True),
    Panel("Lazy rate", (("lazy_rate", "-", "lazy"),), True),
)
EXPERIMENT = arms.experiment("lazy_optimisation", __doc__, ARMS, CLAIMS, PANELS_HERE)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
