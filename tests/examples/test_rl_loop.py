"""The loop in one file: it trains for real, and its tensors are those of the package's own batches."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any, cast

import anyio
import pytest
import torch

from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from examples import rl_loop
from examples.rl_loop import Settings, policy_gradient_loss, turn_advantages
from rlkernel.policy.load import load_model
from rlkernel.training import batch
from rlkernel.types import Completion, Evaluation, Group, Problem, Status, Trajectory, Turn

PROBLEM = Problem("p", 1, "train", "")
LINE = re.compile(r"step +(\d+)  reward +[\d.]+  correct +\d+ %  fast +\d+ %  +[\d,]+ tokens/s  +[\d.]+ s")


def turn(context: tuple[int, ...], tokens: tuple[int, ...], reward: float) -> Turn:
    completion = Completion(tokens, (0.0,) * len(tokens), "", "stop")
    return Turn(context, completion, None, Evaluation(Status.INCORRECT, ""), reward, "")


# The second trajectory has one turn and is the shorter row.
GROUP = Group(
    PROBLEM,
    (
        Trajectory(PROBLEM, (turn((5, 6), (7, 8), 1.0), turn((9,), (10,), 2.0))),
        Trajectory(PROBLEM, (turn((5, 6), (11,), 0.5),)),
    ),
)


@pytest.mark.slow
def test_two_steps_on_the_evaluators_verdicts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    model, tokenizer = load_model("small")
    before = [parameter.detach().clone() for parameter in model.parameters()]
    monkeypatch.setattr(rl_loop, "load_model", lambda name: (model, tokenizer))
    rl_loop.main(["--steps", "2"], problems=1, rollouts=2, device="cpu")
    printed = [LINE.fullmatch(line) for line in capsys.readouterr().out.splitlines()]
    assert [found and found[1] for found in printed] == ["1", "2"]
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())


def test_weights_are_the_advantages_of_the_tokens_that_the_policy_wrote() -> None:
    advantages_GKT = turn_advantages([GROUP], Settings(rollouts=2, turns=2))
    # Returns to go: 1 + 2 = 3 and 2 in the first trajectory, 0.5 in the second. Turn 1: 3 - 0.5 and 0.5 - 3. Turn 2 has one
    # sample and no baseline: 2.
    assert advantages_GKT.tolist() == [[[2.5, 2.0], [-2.5, 0.0]]]
    tokens_BS, real_BS, weights_BS = rl_loop.pad_rows([GROUP], advantages_GKT)
    assert tokens_BS.tolist() == [[5, 6, 7, 8, 9, 10], [5, 6, 11, 0, 0, 0]]
    assert real_BS.tolist() == [[True] * 6, [True] * 3 + [False] * 3]
    assert weights_BS.tolist() == [[0.0, 0.0, 2.5, 2.5, 0.0, 2.0], [0.0, 0.0, -2.5, 0.0, 0.0, 0.0]]


@dataclass(frozen=True)
class Bad:
    """A test double: an estimator with one of a newcomer's mistakes."""

    mistake: str

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        wrong: dict[str, Any] = {"shape": returns_GKT.sum(1), "nan": returns_GKT / 0.0, "nothing": None}
        return cast(torch.Tensor, wrong[self.mistake])


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("shape", "Bad returned a tensor of shape (1, 2) for returns of shape (1, 2, 2): an advantage gives one number per turn"),
        (
            "nan",
            "Bad returned advantages that are not finite: look for a division by 0, and mask what is not valid",
        ),
        ("nothing", "Bad returned a NoneType: an advantage gives a tensor of shape (1, 2, 2)"),
    ],
)
def test_an_estimator_with_a_mistake_is_one_line_and_exit_2(
    mistake: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def train(model: Any, tokenizer: Any, problems: Any, settings: Settings, show: Any) -> None:
        async with anyio.create_task_group():  # which wraps what is raised in a group
            turn_advantages([GROUP], settings)

    monkeypatch.setattr(rl_loop, "train", train)
    monkeypatch.setattr(rl_loop, "load_model", lambda name: (None, None))
    with pytest.raises(SystemExit) as stop:
        rl_loop.main([], advantage=Bad(mistake), rollouts=2)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"error: {said}\n"


def test_the_package_trains_on_the_same_advantages() -> None:
    tokens = batch.pad_rows([GROUP], 0)
    theirs = batch.assemble(
        [GROUP], tokens, advantage=TRLOO(), credit=UniformCredit(), gamma=1.0, decode=lambda ids: "", corrections=()
    )
    _, _, weights_BS = rl_loop.pad_rows([GROUP], turn_advantages([GROUP], Settings(rollouts=2, turns=2)))
    assert torch.equal(weights_BS[:, 2:], theirs.advantages_BC * theirs.loss_mask_BC)  # both prompts have two tokens
    assert theirs.trained_turns == 3


def test_the_loss_of_equally_likely_tokens(tiny_model: Any) -> None:
    with torch.no_grad():
        for parameter in tiny_model.parameters():
            parameter.zero_()
    rows = rl_loop.pad_rows([GROUP], turn_advantages([GROUP], Settings(rollouts=2, turns=2)))
    loss = policy_gradient_loss(tiny_model, *rows, turns=3)
    # All logits 0: log pi = -log V for every token, and the weights sum to 2.5 + 2.5 + 2 - 2.5 = 4.5.
    expected = 4.5 * torch.log(torch.tensor(float(tiny_model.config.vocab_size))) / 3
    assert loss.item() == pytest.approx(float(expected), rel=1e-6)


def test_the_loop_is_read_in_one_sitting() -> None:
    assert len(inspect.getsource(rl_loop).splitlines()) <= 250
