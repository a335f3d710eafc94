"""HRD, hierarchical reward decomposition (arXiv 2510.17891): plans are credited by speed, code by correctness."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from algorithms.layered_reward import LayeredReward
from rlkernel.checks import check_number
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.interfaces import Decode, Reward
from rlkernel.types import Turn


@dataclass(frozen=True)
class HRD:
    """A_token = A_code on code tokens, alpha * A_plan on plan tokens.

    A_code and A_plan are the run's advantage over r_code = valid * correct and r_plan = valid * correct * min(speedup, 3). Code
    tokens are those from the candidate's first character to the end of the answer; the tokens before are the plan. The run's
    own reward does not train, but it is logged, and VoidTurns and FlatGroups judge by it.

    Worked example, A_code = 1, A_plan = -2, alpha = 0.1, three tokens of plan and two of code: [-0.2, -0.2, -0.2, 1, 1].
    """

    alpha: float = 0.1
    """The weight of plan tokens. The paper's value is not public; 0.1 is a reconstruction."""
    code: Reward = LayeredReward(SpeedReward(correct_weight=1.0, speed_weight=0.0))  # noqa: RUF009  (a frozen value)
    """r_code: what code tokens are paid by."""
    plan: Reward = LayeredReward(SpeedReward(correct_weight=0.0, speed_weight=1.0))  # noqa: RUF009
    """r_plan: what plan tokens are paid by."""

    def __post_init__(self) -> None:
        check_number(self, "alpha", least=0)

    def rewards(self, turn: Turn) -> tuple[float, ...]:
        """The turn's two rewards: that of the code, then that of the plan."""
        return self.code(turn.evaluation), self.plan(turn.evaluation)

    def __call__(self, turn: Turn, advantages: Sequence[float], decode: Decode) -> torch.Tensor:
        """See `rlkernel.interfaces.Credit`."""
        code_advantage, plan_advantage = advantages
        position_L = torch.arange(len(turn.completion.token_ids))
        return torch.where(position_L >= first_code_token(turn, decode), code_advantage, self.alpha * plan_advantage).float()


def first_code_token(turn: Turn, decode: Decode) -> int:
    """The position of the first token that holds a character of the candidate; the number of tokens without a candidate."""
    ids = turn.completion.token_ids
    if turn.code is None:
        return len(ids)
    start = code_start(turn.completion.text, turn.code)
    # Tokens are decoded together, because one alone may hold half a character.
    return bisect_right(range(len(ids) + 1), start, key=lambda n: characters(decode(ids[:n]))) - 1


def characters(text: str) -> int:
    """How many characters a decoded text has, where all replacement characters at its end count as one.

    Half a character is decoded as one replacement character by tokenizers of bytes, and as one per byte by those that fall back
    to bytes.

    >>> characters("é"), characters("a\ufffd"), characters("a\ufffd\ufffd\ufffd")
    (1, 2, 2)
    """
    whole = text.rstrip("\ufffd")
    return len(whole) + (len(whole) < len(text))


def code_start(text: str, code: str) -> int:
    """Where `code` begins in `text`, at its last occurrence, whatever the indentation of its lines.

    It is 0 where the code is not found: an answer that cannot be split is credited as code.

    >>> code_start("Plan.\\n  x = 1\\n  y = 2\\n", "x = 1\\ny = 2\\n")
    8
    """
    # As extraction reads it; the length stays the same.
    text = re.sub("\r(?!\n)", "\n", text)
    lines, wanted = text.split("\n"), [line.strip() for line in code.strip("\n").split("\n")]
    stripped = [line.strip() for line in lines]
    last = len(wanted) - 1
    for i in range(len(lines) - len(wanted), -1, -1):
        # A fence may follow the last line.
        if stripped[i : i + last] == wanted[:last] and stripped[i + last].startswith(wanted[last]):
            return sum(len(line) + 1 for line in lines[:i]) + len(lines[i]) - len(lines[i].lstrip())
    return 0
