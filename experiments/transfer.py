"""What is learned on some families of problems helps on one that training never shows (arXiv 2602.05885 trains and tests on other
problems, too).

The world's validation has 30 problems whose operator, a normalisation of columns, is in no training problem (docs/world.md). The
cold start of the preset `world` does not show it either, and no answer to it was ever right there, so that all differences were
0. The preset `world_shown` has a cold start that shows some of the family, in compositions of its own, and its runs decide all
claims here. The other 60 problems have new sizes or new compositions of operators that training shows. 14 of these are
of the family `product`, and one arm is trained on no matrix product, neither of this family nor of `mixed`: what it gains there,
it has learned from other families.

Arms: `trloo`, which trains on all turns, `grpo_single_turn`, which trains on first answers, `trloo_mrs_pr_prs`, the whole recipe,
and `recipe_without_products`. Each is compared with itself before training, and the first and the third with others.

Expected outcome: Fast@1 on the family that is not trained on rises with training, by less than on the others. What transfers is
how bold to be and what to do with an error; what does not is how to reduce over columns. The rate of hacks falls on all families
alike. On products, where the whole recipe goes from 10 to 17 % in Fast@1.2 (and TRLOO alone from 10 to 5, since it gets lazy
there), the recipe without them gains less.

Cost: 4 arms, three of them shared with `multi_turn_estimators` and `full_recipe`. Presets but `world` and `world_shown` have no
such family, and no verdicts on it.
"""

from __future__ import annotations

import sys
from typing import Any

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.summary import Window

ARMS = arms.by_name(arms.TRLOO_ARM, arms.GRPO_SINGLE_TURN, arms.MRS_PR_PRS, arms.WITHOUT_PRODUCTS)
RECIPE, WITHOUT, PRODUCTS = arms.MRS_PR_PRS.name, arms.WITHOUT_PRODUCTS.name, arms.PRODUCTS
KEPT = "/columnnorm_"
"""A part of the names of the problems of the family that training never shows."""
LATER: dict[str, Any] = {"after_look": True}
"""All claims were written down before any run that speaks of them, and after runs that compare 0 with 0."""
OF_KEPT: dict[str, Any] = {**LATER, "among": KEPT}
OF_PRODUCTS: dict[str, Any] = {**LATER, "among": PRODUCTS}
START: dict[str, Any] = {"worse_window": Window(step=0)}
OURS = "not in the paper"
CLAIMS = (
    Claim("Training raises Fast@1 on a family that it never shows", "trloo", "trloo", "fast_1", OURS, **START, **OF_KEPT),
    Claim("Training raises Fast@1.2 on a family that it never shows", "trloo", "trloo", "fast_1.2", OURS, **START, **OF_KEPT),
    Claim(
        "Training lowers hacking on a family that it never shows", "trloo", "trloo", "hacking_rate", OURS,
        higher=False, **START, **OF_KEPT,
    ),
    Claim("Several turns transfer better to a family never shown", "trloo", "grpo_single_turn", "fast_1", OURS, **OF_KEPT),
    Claim("The whole recipe transfers better to a family never shown", RECIPE, "trloo", "fast_1.2", OURS, **OF_KEPT),
    Claim("Training without products raises Fast@1.2 on products", WITHOUT, WITHOUT, "fast_1.2", OURS, **START, **OF_PRODUCTS),
    Claim("Training without products raises coverage on products", WITHOUT, WITHOUT, "coverage", OURS, **START, **OF_PRODUCTS),
    Claim(
        "Training without products lowers hacking on products", WITHOUT, WITHOUT, "hacking_rate", OURS,
        higher=False, **START, **OF_PRODUCTS,
    ),
    Claim("Training on products, too, raises Fast@1.2 on them", RECIPE, WITHOUT, "fast_1.2", OURS, **OF_PRODUCTS),
)  # fmt: skip
EXPERIMENT = arms.experiment("transfer", __doc__, ARMS, CLAIMS)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
