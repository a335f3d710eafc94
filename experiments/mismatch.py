"""Training on samples of another policy destabilises; MRS, which rejects what was sampled too differently, prevents it (arXiv
2602.05885).

In the paper, the gap is between the numerics of an inference engine and of the trainer. Here it is controlled, in two ways.
`float8` samples from a copy whose linear layers are rounded to eight bits. `stale` samples from the weights of one update before.
Nothing corrects for either but MRS, since no arm has importance weights.

Arms: `trloo`, whose gap is that of bfloat16 products; `float8` and `stale`; `float8_mrs` with the paper's bounds of 0.1 % on the
geometric mean over a trajectory; `stale_mrs` with bounds of 1 %, because a whole update is a larger gap than rounding. `hot`,
`hot_stale` and `hot_stale_mrs` have five times the learning rate, at which one update moves the policy visibly.

Expected outcome: `mismatch` is larger by an order of magnitude in the `float8` and `stale` arms. Without MRS the gradient norm is
larger and less steady, and entropy falls faster. Whether anything collapses within these few steps is open. `kept_turns` says
what MRS costs: an arm that trains on little learns slowly, which is stable for the wrong reason, and is to be read beside its
reward.

Cost: 8 arms; `trloo`, `hot`, `float8` and `float8_mrs` shared. With the preset `h200`, half a minute per run on an H200.
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
    arms.FLOAT8_MRS,
    arms.STALE,
    arms.STALE_MRS,
    arms.HOT,
    arms.HOT_STALE,
    arms.HOT_STALE_MRS,
)
ALL = Window(share=1.0)
STABLE = "direction only, of a gap in numerics: without MRS the run collapses, with it the run stays stable"
CLAIMS = (
    Claim("Samples of eight bits cost reward", "trloo", "float8", "reward", STABLE),
    Claim("MRS wins reward back at eight bits", "float8_mrs", "float8", "reward", STABLE),
    Claim(
        "MRS lowers the gradient norm at eight bits",
        "float8_mrs",
        "float8",
        "train/grad_norm",
        STABLE,
        higher=False,
        window=ALL,
        margin=0.0,
    ),
    Claim("MRS keeps entropy at eight bits", "float8_mrs", "float8", "train/entropy", STABLE, margin=0.0),
    Claim("Stale samples cost reward", "trloo", "stale", "reward", STABLE),
    Claim("MRS wins reward back from stale samples", "stale_mrs", "stale", "reward", STABLE),
    Claim("At five times the learning rate stale samples cost reward", "hot", "hot_stale", "reward", STABLE),
    Claim("At five times the learning rate MRS wins reward back", "hot_stale_mrs", "hot_stale", "reward", STABLE),
    Claim(
        "At five times the learning rate MRS lowers the gradient norm",
        "hot_stale_mrs",
        "hot_stale",
        "train/grad_norm",
        STABLE,
        higher=False,
        window=ALL,
        margin=0.0,
    ),
)
PANELS_HERE = (
    PANELS[0],
    Panel("Gradient norm", (("train/grad_norm", "-", "norm"),), False, log=True),
    Panel("Entropy, nats per token", (("train/entropy", "-", "entropy"),), False),
    Panel(
        "Mismatch, and share of turns that train",
        (("train/mismatch", "-", "mismatch"), ("train/kept_turns", "--", "kept")),
        False,
    ),
)
EXPERIMENT = arms.experiment("mismatch", __doc__, ARMS, CLAIMS, PANELS_HERE)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
