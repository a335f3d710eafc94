"""Without the hacking check, a policy is paid for kernels that do nothing, and its Fast@1 looks better than it is (arXiv
2602.05885).

The paper's hacks are kernels that are emitted and never used. The evaluator here decides by data flow whether a launch reaches
the output; the arms differ in whether the reward listens.

Arms: `trloo` pays correct candidates only. `unchecked` pays whatever matches the reference, whatever its status. `weak_check`
also asks that some Triton kernel was launched, whether or not its result is used, as a check of public code does. `capped` and
`capped_unchecked` are the first two where speed beyond the reference pays nothing. Validation counts hacks as incorrect in all
arms. Apparent Fast@1 is what the unchecked evaluator would have reported.

Expected outcome: hacks fade with `trloo`. They stay, or grow, in the unchecked arms, where apparent Fast@1 lies above the true
one and the true one ends lower. In this miniature a fused kernel is worth twice a hack even to the unchecked reward, so the
policy may find its way out of hacking by itself. The rates then differ early and meet late. In the capped arms a hack is worth as
much as the best kernel, as for problems whose reference is hard to beat. There, hacks should grow without the check and vanish
with it. Between `trloo` and `capped` the reward alone differs: fast kernels should become more with `trloo` alone, and lazy ones
stay with `capped`.

Cost: 5 arms; `trloo` is shared with most other experiments. With the preset `h200`, half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.curves import PANELS, Panel

ARMS = arms.by_name(arms.TRLOO_ARM, arms.UNCHECKED, arms.WEAK_CHECK, arms.CAPPED, arms.CAPPED_UNCHECKED)
PAPER = "direction only: Fast@1 rises with the hacks when nothing checks them"
OURS = "not in the paper"
CLAIMS = (
    Claim("Without the check there is more hacking", "unchecked", "trloo", "hacking_rate", PAPER),
    Claim("A check that counts launches leaves more hacking than one of data flow", "weak_check", "trloo", "hacking_rate", PAPER),
    Claim("With the check, true Fast@1 on the first turn is higher", "trloo", "unchecked", "fast_1_turn_1", PAPER),
    Claim("With the check, true Fast@1.2 on the first turn is higher", "trloo", "unchecked", "fast_1.2_turn_1", PAPER),
    Claim(
        "Where speed pays nothing, there is more hacking without the check", "capped_unchecked", "capped", "hacking_rate", OURS
    ),
    Claim("Where speed pays nothing, true Fast@1 is higher with the check", "capped", "capped_unchecked", "fast_1", OURS),
    Claim("Paid for speed, a policy ends with more fast kernels", "trloo", "capped", "fast_1.2", OURS),
    Claim("Paid for speed, it ends with fewer lazy kernels", "trloo", "capped", "lazy_rate", OURS, higher=False),
)
PANELS_HERE = (
    PANELS[0],
    Panel("Fast@1, true and apparent", (("fast_1", "-", "true"), ("apparent_fast_1", "--", "apparent")), True),
    Panel("Fast@1.2, true and apparent", (("fast_1.2", "-", "true"), ("apparent_fast_1.2", "--", "apparent")), True),
    Panel("Hacking rate", (("hacking_rate", "-", "hacking"),), True),
)
EXPERIMENT = arms.experiment("reward_hacking", __doc__, ARMS, CLAIMS, PANELS_HERE)

if __name__ == "__main__":
    sys.exit(experiment.main(EXPERIMENT, sys.argv[1:]))
