"""Training on samples of other weights destabilises; MRS, which rejects what was sampled too differently, prevents it (arXiv
2602.05885).

In the paper the gap is between the numerics of an inference engine and of the trainer. Here it is controlled: `stale` samples
each batch from the weights of one update before, at a learning rate at which one update moves the policy visibly. Nothing
corrects for it but MRS, since the loss has no importance weights.

Arms: `trloo`, whose samples come from the weights that they update; `stale`; `stale_mrs` with the paper's bounds of 0.1 % on
the geometric mean over a trajectory; `stale_mrs_wide` with bounds of 5 %, because a whole update is a larger gap than rounding,
and bounds of 0.1 % may leave nothing to train on. On a GPU even `trloo` samples from a bfloat16 copy of the float32 weights.

Expected outcome: `mismatch` is far larger in the stale arms; the gradient norm of `stale` is larger and less steady than with
MRS, and its entropy falls faster. Whether it collapses within these few steps is open. `kept_turns` says what MRS costs:
`stale_mrs` may train on little and learn slowly, which would be stable for the wrong reason, and is to be read beside its
reward.

Cost: 4 arms, `trloo` shared. Time on a GPU: not yet measured.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel import experiment
from rlkernel.claims import Claim
from rlkernel.figure import PANELS, Panel
from rlkernel.summary import Window

ARMS = arms.by_name(arms.TRLOO_ARM, arms.STALE, arms.STALE_MRS, arms.STALE_MRS_WIDE)
ALL = Window(share=1.0)
STABLE = "direction only: without MRS the run collapses, with it the run stays stable"
CLAIMS = (
    Claim("Stale samples cost reward", "trloo", "stale", "reward", STABLE),
    Claim("MRS wins reward back", "stale_mrs_wide", "stale", "reward", STABLE),
    Claim(
        "MRS lowers the gradient norm", "stale_mrs_wide", "stale", "train/grad_norm", STABLE, higher=False, window=ALL, margin=0.0
    ),
    Claim("MRS keeps entropy", "stale_mrs_wide", "stale", "train/entropy", STABLE, margin=0.0),
    Claim("MRS with the paper's bounds wins reward back", "stale_mrs", "stale", "reward", STABLE),
)
PANELS_HERE = (
    PANELS[0],
    Panel("Gradient norm", (("train/grad_norm", "-", "norm"),), False),
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
