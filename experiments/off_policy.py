"""Where rollouts are not from the policy in training, importance weights that are truncated (TIS, arXiv 2510.26788) keep training
stable and lose less than rejections do (MIS, arXiv 2510.18855; MRS, arXiv 2602.05885).

The gap is controlled in two ways. `float8` samples from a copy of the weights that is rounded to eight bits. `hot_age2` samples
from the weights of two steps before, at five times the learning rate, where a step moves the policy visibly.

Arms: `trloo` and `hot` have no gap. `float8_tis` and `hot_age2_tis` weigh by whole trajectories, at most 2; `float8_mis` and
`hot_age2_mis` weigh by tokens within 0.5 and 5 and drop the rest; `float8_mrs` has the paper's bounds of 0.1 %, `hot_age2_mrs`
those of 1 %, because the paper's would drop everything at age 2. So TIS and MIS differ in two things there, the level and what
happens beyond a bound. `hot_age2_tis_token` (tokens, at most 2) and `hot_age2_mis_sequence` (trajectories, 0.5 to 2) take the two
apart. The other combinations of gap and learning rate come last: `age2`, `age2_tis` and `age2_mrs` at the usual one,
`hot_float8`, `hot_float8_tis` and `hot_float8_mrs` at five times that. Five times the rate destroys the policy of the preset
`world` with fresh samples, too; there `twice_the_rate` has the same arms at twice that.

Expected outcome: `effective_trajectories` and `extreme_ratios` say that eight bits are a small gap and age 2 a large one. At
eight bits no arm differs by more than the seeds do. At age 2, TIS is ahead of nothing and of MRS, which trains on few of its
turns (`kept_turns`), and its gradient norm is below that of nothing. TIS by trajectories is ahead of TIS by tokens, whose
weights say nothing of the turns before, and at either level TIS is ahead of MIS, which drops more. At the usual learning rate
age 2 is a small gap. At five times that, eight bits are no larger one than before, because the rounding is that of the same
weights. What each correction does to the gradient on average is known exactly for a toy: `python -m
experiments.off_policy_bias`. A truncated weight of trajectories leaves a quarter of the error there, where a trajectory is two
choices; sums of d over thousands of tokens saturate at the bound.

Cost: 18 arms; `trloo`, `hot`, `float8` and `float8_mrs` shared. With the preset `h200`, half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.curves import PANELS, Panel
from rlkernel.report.summary import Window

ARMS = arms.by_name(
    arms.TRLOO_ARM,
    arms.FLOAT8,
    arms.FLOAT8_TIS,
    arms.FLOAT8_MIS,
    arms.FLOAT8_MRS,
    arms.HOT,
    arms.HOT_AGE2,
    arms.HOT_AGE2_TIS,
    arms.HOT_AGE2_MIS,
    arms.HOT_AGE2_MRS,
    arms.HOT_AGE2_TIS_TOKEN,
    arms.HOT_AGE2_MIS_SEQUENCE,
    arms.AGE2,
    arms.AGE2_TIS,
    arms.AGE2_MRS,
    arms.HOT_FLOAT8,
    arms.HOT_FLOAT8_TIS,
    arms.HOT_FLOAT8_MRS,
)
STABLE = "direction only: weights keep training stable where samples are off-policy"
LESS = "direction only: weighing keeps what rejecting drops"
OURS = "our own question: which of level and kind it is, by the exact errors of `experiments/off_policy_bias.py`"
CLAIMS = (
    Claim("At five times the learning rate, age 2 costs reward", "hot", "hot_age2", "reward", STABLE),
    Claim("At age 2 and five times the rate, TIS wins reward back", "hot_age2_tis", "hot_age2", "reward", STABLE),
    Claim("At age 2 and five times the rate, MIS wins reward back", "hot_age2_mis", "hot_age2", "reward", STABLE),
    Claim("At age 2 and five times the rate, TIS is ahead of MRS", "hot_age2_tis", "hot_age2_mrs", "reward", LESS),
    Claim(
        "At age 2 and five times the rate, TIS lowers the gradient norm",
        "hot_age2_tis",
        "hot_age2",
        "train/grad_norm",
        STABLE,
        higher=False,
        window=Window(share=1.0),
        margin=0.0,
    ),
    Claim("At eight bits, TIS wins reward back", "float8_tis", "float8", "reward", STABLE),
    Claim("At eight bits, MIS wins reward back", "float8_mis", "float8", "reward", STABLE),
    Claim("At eight bits, TIS is ahead of MRS", "float8_tis", "float8_mrs", "reward", LESS),
    Claim("At the usual learning rate, age 2 costs reward", "trloo", "age2", "reward", STABLE),
    Claim("At the usual learning rate and age 2, TIS is ahead of nothing", "age2_tis", "age2", "reward", STABLE),
    Claim("At the usual learning rate and age 2, MRS is ahead of nothing", "age2_mrs", "age2", "reward", STABLE),
    Claim("At five times the learning rate, eight bits cost reward", "hot", "hot_float8", "reward", STABLE),
    Claim("At eight bits and five times the rate, TIS is ahead of nothing", "hot_float8_tis", "hot_float8", "reward", STABLE),
    Claim("At eight bits and five times the rate, MRS is ahead of nothing", "hot_float8_mrs", "hot_float8", "reward", STABLE),
    *(
        Claim(f"At age 2 and five times the rate, {told}", better, worse, "reward", OURS, after_look=True)
        for told, better, worse in (
            ("TIS by trajectories is ahead of TIS by tokens", "hot_age2_tis", "hot_age2_tis_token"),
            ("TIS by trajectories is ahead of MIS by trajectories", "hot_age2_tis", "hot_age2_mis_sequence"),
            ("TIS by tokens is ahead of MIS by tokens", "hot_age2_tis_token", "hot_age2_mis"),
        )
    ),
)
PANELS_HERE = (
    PANELS[0],
    Panel("Gradient norm", (("train/grad_norm", "-", "norm"),), False, log=True),
    Panel("Entropy, nats per token", (("train/entropy", "-", "entropy"),), False),
    Panel(
        "Effective share of tokens, and of turns that train",
        (("train/effective_tokens", "-", "effective"), ("train/kept_turns", "--", "kept")),
        False,
    ),
)
EXPERIMENT = arms.experiment("off_policy", __doc__, ARMS, CLAIMS, PANELS_HERE)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
