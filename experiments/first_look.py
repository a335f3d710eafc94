"""Long steps on old samples do more to a policy than the estimator that learns from them: a first look that two cores can afford
(arXiv 2602.05885).

Two contrasts share one baseline, so that a reader sees one claim decided beside one that is not. Between estimators the paper
reports a few points, which three seeds cannot tell from chance. Between a policy that learns from samples of its own and one that
learns, in steps five times as long, from those of the weights of two steps before, the difference is as large as it can be.

Arms: `trloo` updates the weights that have just sampled. `grpo` differs in the advantage alone. `hot_age2` has five times the
learning rate, and its samples are two steps old; nothing corrects for that. `off_policy` takes the two apart, and has the
corrections.

Expected outcome: `hot_age2` forgets within six steps how to write kernels. `grpo` cannot be told from `trloo`; the report says
how many seeds could. The contrast was chosen for the size of its effect, after a look at runs of `hot_age2` with the preset
`cpu`, which this experiment repeats there: the claim about it is marked.

Cost: 3 arms, all shared with `multi_turn_estimators` and `off_policy`. With the preset `h200`, half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from experiments.multi_turn_estimators import ABOVE
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim

ARMS = arms.by_name(arms.TRLOO_ARM, arms.GRPO_ARM, arms.HOT_AGE2)
OURS = "not in the paper"
CLAIMS = (
    Claim("Old samples and long steps cost reward", "trloo", "hot_age2", "reward", OURS, after_look=True),
    Claim("TRLOO ends above GRPO in reward", "trloo", "grpo", "reward", ABOVE),
)
EXPERIMENT = arms.experiment("first_look", __doc__, ARMS, CLAIMS)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
