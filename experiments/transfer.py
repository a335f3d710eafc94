"""What is learned on some families of problems helps on one that training never shows (arXiv 2602.05885 trains and tests on other
problems, too).

The world's validation has 30 problems whose operator, a normalisation of columns, is in no training problem and in none of the
cold start's (docs/world.md). The other 60 have new sizes or new compositions of operators that are. 14 of these are of the family
`product`, and one arm is trained on no matrix product, neither of this family nor of `mixed`: what it gains there, it has learned
from other families.

Arms: `trloo`, which trains on all turns, `grpo_single_turn`, which trains on first answers, `trloo_mrs_pr_prs`, the whole recipe,
and `recipe_without_products`. Each is compared with itself before training, and the first and the third with others.

Expected outcome: Fast@1 on the unseen operator rises with training, by less than on the others. What transfers is how bold to be
and what to do with an error; what does not is how to reduce over columns. The rate of hacks falls on all families alike. On
products, where the whole recipe goes from 10 to 17 % in Fast@1.2 (and TRLOO alone from 10 to 5, since it gets lazy there), the
recipe without them gains less.

Cost: 4 arms, three of them shared with `multi_turn_estimators` and `full_recipe`. Other presets have no unseen family, and no
verdicts on it.
"""

from __future__ import annotations

import sys
from typing import Any

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.summary import Window

ARMS = arms.by_name(arms.TRLOO_ARM, arms.GRPO_SINGLE_TURN, arms.MRS_PR_PRS, arms.WITHOUT_PRODUCTS)
UNSEEN = "/columnnorm_"
"""A part of the names of the problems of the family that neither training nor the cold start shows."""
WITHOUT, PRODUCTS = arms.WITHOUT_PRODUCTS.name, arms.PRODUCTS
START = Window(step=0)
FROM_START: dict[str, Any] = {"worse_window": START, "among": PRODUCTS, "after_look": True}
"""The later claims, which were written down before any run of theirs, because the first ones compare 0 with 0."""
OURS = "not in the paper"
CLAIMS = (
    Claim("Training raises Fast@1 on an unseen family", "trloo", "trloo", "fast_1", OURS, worse_window=START, among=UNSEEN),
    Claim("Training raises Fast@1.2 on an unseen family", "trloo", "trloo", "fast_1.2", OURS, worse_window=START, among=UNSEEN),
    Claim(
        "Training lowers hacking on an unseen family", "trloo", "trloo", "hacking_rate", OURS,
        higher=False, worse_window=START, among=UNSEEN,
    ),
    Claim("Several turns transfer better to an unseen family", "trloo", "grpo_single_turn", "fast_1", OURS, among=UNSEEN),
    Claim("The whole recipe transfers better to an unseen family", "trloo_mrs_pr_prs", "trloo", "fast_1.2", OURS, among=UNSEEN),
    Claim("Training without products raises Fast@1.2 on products", WITHOUT, WITHOUT, "fast_1.2", OURS, **FROM_START),
    Claim("Training without products raises coverage on products", WITHOUT, WITHOUT, "coverage", OURS, **FROM_START),
    Claim(
        "Training without products lowers hacking on products", WITHOUT, WITHOUT, "hacking_rate", OURS,
        higher=False, **FROM_START,
    ),
    Claim(
        "Training on products, too, raises Fast@1.2 on them", "trloo_mrs_pr_prs", WITHOUT, "fast_1.2", OURS,
        among=PRODUCTS, after_look=True,
    ),
)  # fmt: skip
EXPERIMENT = arms.experiment("transfer", __doc__, ARMS, CLAIMS)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
