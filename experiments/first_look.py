"""What a reward pays for decides more than the estimator that teaches it: a first look that two cores can afford (arXiv
2602.05885).

Two contrasts share one baseline, so that a reader sees one claim decided beside one that is not. Between estimators the paper
reports a few points, which three seeds cannot tell from chance. Between rewards the difference is large: a policy that is paid
for correctness alone has no reason to write faster kernels.

Arms: `trloo` is paid for correctness and speed. `grpo` differs in the advantage alone. `capped` differs in the reward alone:
speed beyond the reference pays nothing.

Expected outcome: Fast@1.2 rises with `trloo` and stays with `capped`, whose lazy kernels stay, too. `grpo` cannot be told from
`trloo`; the report says how many seeds could.

Cost: 3 arms, all shared with `multi_turn_estimators` and `reward_hacking`. Half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from experiments.multi_turn_estimators import ABOVE
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim

ARMS = arms.by_name(arms.TRLOO_ARM, arms.GRPO_ARM, arms.CAPPED)
OURS = "not in the paper"
CLAIMS = (
    Claim("Paid for speed, a policy ends with more fast kernels", "trloo", "capped", "fast_1.2", OURS),
    Claim("Paid for speed, it ends with fewer lazy kernels", "trloo", "capped", "lazy_rate", OURS, higher=False),
    Claim("TRLOO ends above GRPO in reward", "trloo", "grpo", "reward", ABOVE),
)
EXPERIMENT = arms.experiment("first_look", __doc__, ARMS, CLAIMS)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
