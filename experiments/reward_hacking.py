"""Without the hacking check, a policy is paid for kernels that do nothing, and its Fast@1 looks better than it is (arXiv
2602.05885).

The paper's hacks are kernels that are emitted and never used. The evaluator here decides by data flow whether a launch reaches
the output; the arms differ in whether the reward listens.

Arms: `trloo` pays correct candidates only; `unchecked` pays whatever matches the reference, whatever its status; `weak_check`
also asks that some Triton kernel was launched, whether or not its result is used, as a check of public code does. `capped` and
`capped_unchecked` are the first two where speed beyond the reference pays nothing. Validation counts hacks as incorrect in all
arms; apparent Fast@1 is what the unchecked evaluator would have reported.

Expected outcome: hacks fade with `trloo` and stay, or grow, in the unchecked arms, where apparent Fast@1 lies above the true one.
The true one ends lower. In this miniature a fused kernel is worth twice a hack even to the unchecked reward, so that the policy
may find its way out of hacking by itself; then the rates differ early and meet late. The first four seeds showed just that, which
is why the capped arms were added: there a hack is worth as much as the best kernel, as for problems whose reference is hard to
beat, and hacks should grow without the check and vanish with it.

Seen on H200s, 2026-11-21: with the check hacks fall from 20 % of the answers to 1 % in 16 steps. Without it they fall, too, only
later (to 3 %): they are paid 1 and a fused kernel 2, and this policy can learn to fuse. A check that counts launches helps hardly
more than none (0.7 points [-0.1, 1.4] in the second half), because three of four hacks that were kept as text launch a kernel and
ignore it; all kinds were shown by the teacher, none is the policy's invention. Where speed pays nothing (`capped_unchecked`),
hacks rise in every seed, from 19 % to 29 % on average, and true Fast@1 falls by 8 points [4, 12]; in the second half it is 19
points below `capped`, whose kernels turn lazy instead (26 to 44 %). The reward rises by 0.04 until step 8 and then stays, while
hacks go on rising. This is how the paper explains its hacks; that its models work in this regime, where fast kernels are out of
reach, is our reading. The paper's rising Fast@1 was not seen: apparent Fast@1 falls, too, and is 3 points [1, 5] above the true
one in the second half, since the median hack runs at 0.99 of the reference's speed.

The 5 points of Fast@1 on the first turn between `trloo` and `unchecked` are weaker than their verdict. A kernel about as fast as
the reference is on either side of 1 by one measurement, which all arms on a card then share: before training, runs of equal seed
differ by up to 15 points in Fast@1 between cards and by 1 on one card, in Fast@1.2 by 4 and by 0. Arms of seeds 4 and 5, and of
the capped pair, ran on different cards; with seeds 0 to 3 alone the 5 points are 3 [-3, 9], less the difference before training 3
[-0.5, 7]. The 19 points of the capped pair stay (18 [12, 24]).

Cost: 5 arms; `trloo` is shared with most other experiments. Half a minute per run on an H200.
"""

from __future__ import annotations

import sys

from experiments import arms
from rlkernel.commands import experiment
from rlkernel.report.claims import Claim
from rlkernel.report.figure import PANELS, Panel

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
