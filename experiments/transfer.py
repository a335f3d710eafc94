"""What is learned on some families of problems helps on one that training never shows (arXiv 2602.05885 trains and tests on other
problems, too).

The world's validation has 30 problems whose operator, a normalisation of columns, is in no training problem (docs/world.md). The
other 60 have new sizes or new compositions of operators that are.

Arms: `trloo`, which trains on all turns, `grpo_single_turn`, which trains on first answers, and `trloo_mrs_pr_prs`, the whole
recipe. Each is compared with itself before training, and the first with the others.

Expected outcome: Fast@1 on the unseen family rises with training, by less than on the others. What transfers is how bold to be
and what to do with an error; what does not is how to reduce over columns. The rate of hacks falls on all families alike.

Cost: 3 arms, all shared with `multi_turn_estimators` and `full_recipe`. Other presets have no unseen family, and no verdicts on
it.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.summary import Window

ARMS = arms.by_name(arms.TRLOO_ARM, arms.GRPO_SINGLE_TURN, arms.MRS_PR_PRS)
UNSEEN = "/columnnorm_"
"""A part of the names of the problems of the family that training never shows."""
START = Window(step=0)
OURS = "not in the paper"
CLAIMS = (
    Claim("Training raises Fast@1 on an unseen family", "trloo", "trloo", "fast_1", OURS, worse_window=START, among=UNSEEN),
    Claim("Training raises Fast@1.2 there", "trloo", "trloo", "fast_1.2", OURS, worse_window=START, among=UNSEEN),
    Claim(
        "Training lowers hacking there", "trloo", "trloo", "hacking_rate", OURS,
        higher=False, worse_window=START, among=UNSEEN,
    ),
    Claim("Several turns transfer better than one", "trloo", "grpo_single_turn", "fast_1", OURS, among=UNSEEN),
    Claim("The whole recipe transfers better", "trloo_mrs_pr_prs", "trloo", "fast_1.2", OURS, among=UNSEEN),
)  # fmt: skip
EXPERIMENT = arms.experiment("transfer", __doc__, ARMS, CLAIMS)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
