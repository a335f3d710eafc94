"""Where samples are two steps old, at twice the learning rate, truncated importance weights (TIS, arXiv 2510.26788) keep training
stable and lose less than rejections do (MRS, arXiv 2602.05885).

`off_policy` asks this at five times the learning rate, which was chosen for a smaller world. The policy of the preset `world`
forgets all at that rate, with fresh samples, too, so that its runs compare 0 with 0. These arms were added after a look at those
runs, and before any of their own.

Arms: `warm` has fresh samples; `warm_age2` samples from the weights of two steps before; `warm_age2_tis` weighs by whole
trajectories, at most 2; `warm_age2_mrs` keeps turns within 1 % of a ratio of 1.

Expected outcome: `warm` trains. Age 2 costs reward, and TIS wins a part of it back. MRS trains on few of its turns
(`kept_turns`), and is behind TIS.

Cost: 4 arms. With the preset `world`, a minute per run and card where five run side by side.
"""

from __future__ import annotations

import sys

from experiments import arms
from experiments.off_policy import LESS, PANELS_HERE, STABLE
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.summary import Window

ARMS = arms.by_name(arms.WARM, arms.WARM_AGE2, arms.WARM_AGE2_TIS, arms.WARM_AGE2_MRS)
CLAIMS = (
    Claim("At twice the learning rate, age 2 costs reward", "warm", "warm_age2", "reward", STABLE, after_look=True),
    Claim("At age 2 and twice the rate, TIS wins reward back", "warm_age2_tis", "warm_age2", "reward", STABLE, after_look=True),
    Claim("At age 2 and twice the rate, TIS is ahead of MRS", "warm_age2_tis", "warm_age2_mrs", "reward", LESS, after_look=True),
    Claim(
        "At age 2 and twice the rate, TIS lowers the gradient norm",
        "warm_age2_tis",
        "warm_age2",
        "train/grad_norm",
        STABLE,
        higher=False,
        window=Window(share=1.0),
        margin=0.0,
        after_look=True,
    ),
)
EXPERIMENT = arms.experiment("twice_the_rate", __doc__, ARMS, CLAIMS, PANELS_HERE)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
