"""What the words of a command line ask for: arms and flags."""

from __future__ import annotations

import pytest

from rlkernel.commands.asked import OVERRIDES, Flags, parse
from rlkernel.config import METHODS
from rlkernel.errors import UsageError
from tests.commands.scripted_training import ARMS


def test_arms_come_first_and_none_means_all() -> None:
    assert parse("x", ARMS, [])[0] == ("grpo", "trloo")
    assert parse("x", ARMS, ["trloo", "--steps", "3"]) == (("trloo",), Flags(steps=3))
    assert parse("x", ARMS, ["trloo", "grpo", "trloo"])[0] == ("trloo", "grpo")


def test_no_flag_reaches_the_algorithm() -> None:
    assert not {*METHODS, "gamma", "environment", "temperature", "loss", "updates", "epochs"} & set(OVERRIDES)


def test_an_unknown_arm_is_refused_before_flags_are_read() -> None:
    with pytest.raises(UsageError, match="unknown arm 'x'"):
        parse("name", ARMS, ["x", "--bogus"])


def test_no_runs_side_by_side_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^--together 0: at least 1$"):
        parse("x", ARMS, ["--together", "0"])
