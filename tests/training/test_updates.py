"""Several updates of one batch: each kind of loss and each level of its ratio against the formula, and the denominators."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
import trl

from algorithms.reinforce_pp import ReinforcePP
from rlkernel.settings import Kind, Loss, Ratio
from rlkernel.training.diagnostics import Drift
from rlkernel.training.minibatches import minibatches
from rlkernel.training.trainer import KernelGRPOTrainer
from rlkernel.types import Group, Trajectory
from tests.training.trainer_doubles import (
    PROBLEMS,
    RejectFirstTurns,
    ScriptedHooks,
    batch_of,
    make_groups,
    make_trainer,
    make_turn,
    sampled_logprobs,
)

ADVANTAGES = ((2.5, 2.0), (-2.5,))
"""The advantages of the turns of a group of `make_groups`: returns to go 3 and 2, against 0.5."""
LOW, HIGH = 0.03, 0.04


def ratios(level: Ratio, now: Sequence[torch.Tensor], old: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Per turn of one trajectory, each token's ratio: its level's value, its own gradient."""
    differences = [n - o for n, o in zip(now, old, strict=True)]
    if level == "token":
        return [d.exp() for d in differences]
    whole = torch.cat(differences).mean().exp()
    values = [whole if level == "sequence" else d.mean().exp() for d in differences]
    return [value.detach() * (n - n.detach()).exp() for value, n in zip(values, now, strict=True)]


def by_hand(kind: Kind, r: torch.Tensor, advantage: float, logprobs: torch.Tensor) -> torch.Tensor:
    if kind == "reinforce":
        return -advantage * (logprobs - logprobs.detach() + 1)  # the gradient of -A log pi; TRL's value is that of a ratio of 1
    if kind == "cispo":
        return -r.detach().clamp(max=1 + HIGH) * advantage * logprobs
    return -torch.minimum(r * advantage, r.clamp(1 - LOW, 1 + HIGH) * advantage)


@pytest.mark.parametrize(("kind", "level"), [*product(("clip", "cispo"), get_args(Ratio)), ("reinforce", "token")])
def test_every_loss_is_the_formula(kind: Kind, level: Ratio, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    loss = Loss(kind, level, clip_low=LOW, clip_high=HIGH)
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, loss=loss, epochs=2)
    output = batch_of(trainer)
    # Old log-probabilities that differ by up to 0.4, so that turns and trajectories leave their bounds, too, on both sides.
    noise_BC = 0.8 * torch.rand(output["completion_ids"].shape, generator=torch.Generator().manual_seed(0)) - 0.4
    objective, clipped, b = torch.tensor(0.0), 0, 0
    for group in make_groups(PROBLEMS):
        for trajectory, advantages in zip(group.trajectories, ADVANTAGES, strict=True):
            now, spans = sampled_logprobs(tiny_model, trajectory, 1.0), trainer._tokens.rows[b].spans  # type: ignore[union-attr]
            old = [n.detach() + noise_BC[b, start:end] for n, (start, end) in zip(now, spans, strict=True)]
            for r, advantage, logprobs in zip(ratios(level, now, old), advantages, now, strict=True):
                objective = objective + by_hand(kind, r, advantage, logprobs).sum() / 6
                clipped += int((r > 1 + HIGH).sum() if advantage > 0 else (r < 1 - LOW).sum() if kind == "clip" else 0)
            b += 1
    objective.backward()
    weight = tiny_model.model.embed_tokens.weight
    expected = weight.grad.clone()
    tiny_model.zero_grad()
    # The trainer's own are exact: the noise is added to what it has found, in its layout.
    if kind == "reinforce":
        assert "old_per_token_logps" not in output
    else:
        assert 0 < clipped < 16
        output["old_per_token_logps"] = output["old_per_token_logps"] + noise_BC
    found = trainer.compute_loss(trainer.model, output)
    found.backward()
    assert found.item() == pytest.approx(objective.item(), abs=1e-4)
    torch.testing.assert_close(weight.grad, expected, atol=2e-5, rtol=1e-4)
    (share,) = trainer._metrics["train"][trainer._noted[1]]
    assert share == pytest.approx(clipped / 16 if kind != "reinforce" else 0.0)


def test_the_ratio_of_sequences_is_trls_where_all_turns_have_one_advantage(
    tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    """GSPO. TRL's own gives every token the sum of its row's advantages, which is the same only here."""
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, loss=Loss(ratio="sequence"), epochs=2)
    output = batch_of(trainer)
    output["old_per_token_logps"] = output["old_per_token_logps"] + 0.6 * torch.rand(output["advantages"].shape) - 0.3
    weight = tiny_model.model.embed_tokens.weight
    gradients = {}
    for name in ("one advantage", "own advantages"):
        if name == "one advantage":
            advantages = torch.tensor([2.0, -1.0, 1.5, -0.5])[:, None].expand(output["advantages"].shape)
            given = {**output, "advantages": advantages * output["tool_mask"]}
        else:
            given = output
        for whose in ("ours", "theirs"):
            tiny_model.zero_grad()
            trainer._part = {} if whose == "ours" else dict(given)  # what our forward pass scores
            trainer.importance_sampling_level = "token" if whose == "ours" else "sequence"
            loss = trainer.compute_loss if whose == "ours" else trl.GRPOTrainer._compute_loss.__get__(trainer)
            loss(trainer.model, dict(given)).backward()
            gradients[name, whose] = weight.grad.clone()
    torch.testing.assert_close(gradients["one advantage", "ours"], gradients["one advantage", "theirs"], atol=2e-5, rtol=1e-4)
    assert not torch.allclose(gradients["own advantages", "ours"], gradients["own advantages", "theirs"], atol=1e-3)


def uneven_groups(step: int) -> tuple[Group, ...]:
    """Groups of 4, 2 and 2 turns (and 2, 2 and 2 trajectories)."""
    two, *_ = make_groups(PROBLEMS)
    long = Group(two.problem, (two.trajectories[0], Trajectory(two.problem, two.trajectories[0].turns[:1] * 2)))
    short = [
        Group(two.problem, tuple(Trajectory(two.problem, (make_turn((9,), (20 + i, 60 + k), float(k)),)) for k in range(2)))
        for i in range(2)
    ]
    return (long, *short)


def gradients(model: Any, tokenizer: Any, directory: Path, **changes: Any) -> tuple[list[torch.Tensor], ScriptedHooks]:
    """The gradient of each update at unchanged weights."""
    settings = {"learning_rate": 0.0, "prompts_per_step": 3, "max_grad_norm": 0.0}
    trainer, hooks = make_trainer(model, tokenizer, directory, **{**settings, **changes})
    hooks.rollout = uneven_groups  # type: ignore[method-assign]
    found: list[torch.Tensor] = []
    get = trainer._get_grad_norm

    def note(model: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).clone())
        return get(model, *args, **kwargs)

    trainer._get_grad_norm = note  # type: ignore[method-assign]
    trainer.train()
    return found, hooks


@pytest.mark.parametrize("micro_tokens", [64, 1])
def test_the_mean_of_the_minibatches_gradients_is_the_batchs(
    micro_tokens: int, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    (whole,), one = gradients(tiny_model, tiny_tokenizer, tmp_path / "one")
    parts, several = gradients(tiny_model, tiny_tokenizer, tmp_path / "several", updates=3, epochs=2, micro_tokens=micro_tokens)
    assert len(parts) == 6 and whole.norm() > 0.1
    # Minibatches of 4, 2 and 2 turns: a mean of their own means would weigh those of the first by half.
    for epoch in (parts[:3], parts[3:]):
        torch.testing.assert_close(torch.stack(epoch).mean(0), whole, atol=1e-5, rtol=1e-4)
        assert min((part - whole).norm() / whole.norm() for part in epoch) > 0.1
    # Each epoch cuts the batch anew.
    assert [part.norm().item() for part in parts[:3]] != pytest.approx([part.norm().item() for part in parts[3:]], rel=1e-3)
    (facts,), (before,) = several.facts, one.facts
    assert facts.loss == pytest.approx(before.loss, abs=1e-5)
    assert facts.entropy == pytest.approx(before.entropy, abs=1e-5)
    assert facts.grad_norm == pytest.approx(sum(part.norm().item() for part in parts) / 6, rel=1e-4)
    assert facts.clip_fraction == 0.0  # nothing has moved


def test_advantages_are_those_of_the_whole_batch(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    """An estimator that compares over the batch does so before it is cut: over a minibatch, it would be another."""
    (whole,), _ = gradients(tiny_model, tiny_tokenizer, tmp_path / "one", advantage=ReinforcePP())
    parts, _ = gradients(tiny_model, tiny_tokenizer, tmp_path / "several", updates=3, advantage=ReinforcePP())
    torch.testing.assert_close(torch.stack(parts).mean(0), whole, atol=1e-5, rtol=1e-4)
    # Not one that is zero, nor that of a baseline per group.
    (grouped,), _ = gradients(tiny_model, tiny_tokenizer, tmp_path / "grouped")
    assert whole.norm() > 0.1 and torch.cosine_similarity(whole, grouped, 0) < 0.99


@pytest.mark.parametrize(("kind", "clips"), [("clip", True), ("cispo", True), ("reinforce", False)])
def test_a_second_epoch_is_clipped(kind: Kind, clips: bool, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, loss=Loss(kind), epochs=4, learning_rate=1e-2, steps=2)
    trainer.train()
    # To transformers, the four updates are one step; the optimiser counts them.
    assert [facts.step for facts in hooks.facts] == [1, 2] and trainer.state.global_step == 2
    assert {int(state["step"]) for state in trainer.optimizer.state.values()} == {8}
    assert all((facts.clip_fraction > 0.1) is clips for facts in hooks.facts)
    # Old log-probabilities are of before the first update, once per batch.
    assert all(facts.mismatch is not None for facts in hooks.facts)


@pytest.mark.parametrize("micro_tokens", [64, 1])
@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_drift_is_from_before_the_first_update_to_the_last_pass(
    kind: Kind, micro_tokens: int, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    """Two epochs of one update: the last pass has seen the first update. The plain model says the same of both weights."""
    trajectories = [
        trajectory for group in make_groups(PROBLEMS) for trajectory in group.trajectories if len(trajectory.turns) > 1
    ]
    start = {name: tensor.clone() for name, tensor in tiny_model.state_dict().items()}

    def seconds() -> torch.Tensor:
        with torch.no_grad():
            return torch.cat([sampled_logprobs(tiny_model, trajectory, 1.0)[1] for trajectory in trajectories]).double()

    old, settings = seconds(), {"loss": Loss(kind), "learning_rate": 1e-2, "micro_tokens": micro_tokens}
    trainer, once = make_trainer(tiny_model, tiny_tokenizer, tmp_path / "once", RejectFirstTurns([]), **settings)
    trainer.train()
    d = seconds() - old
    tiny_model.load_state_dict(start)
    trainer, twice = make_trainer(tiny_model, tiny_tokenizer, tmp_path / "twice", RejectFirstTurns([]), epochs=2, **settings)
    trainer.train()
    (one,), (two,) = once.facts, twice.facts
    assert one.drift == Drift(0.0, 1.0)  # exactly, though two passes compute the same log-probabilities by other sums
    assert two.drift is not None and two.drift.kl > 1e-3
    assert two.drift.kl == pytest.approx(float((d.exp() - 1 - d).mean()), rel=1e-3)
    assert two.drift.largest_ratio == pytest.approx(float(d.abs().max().exp()), rel=1e-4)


def test_clipping_ends_what_epochs_would_go_on_with(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    """With bounds of 0, whatever has moved the way of its advantage has no gradient any more."""
    norms = {}
    start = {name: tensor.clone() for name, tensor in tiny_model.state_dict().items()}
    for kind in ("clip", "reinforce"):
        tiny_model.load_state_dict(start)
        loss = Loss(kind, clip_low=0.0, clip_high=0.0)
        settings = {"epochs": 2, "prompts_per_step": 3, "learning_rate": 1e-4, "max_grad_norm": 0.0}
        trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path / kind, loss=loss, **settings)
        hooks.rollout = uneven_groups  # type: ignore[method-assign]
        trainer.train()
        norms[kind] = list(trainer._norms)
    assert norms["clip"][0] == pytest.approx(norms["reinforce"][0], rel=1e-4)
    assert norms["clip"][1] < 0.8 * norms["reinforce"][1]


def test_an_update_without_a_trained_token_changes_nothing(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    """Only one of the three minibatches has second turns; momentum must not move the weights in the others."""
    settings = {"updates": 3, "prompts_per_step": 3, "learning_rate": 1e-2}
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, RejectFirstTurns([]), **settings)
    hooks.rollout = uneven_groups  # type: ignore[method-assign]
    trainer.train()
    assert {int(state["step"]) for state in trainer.optimizer.state.values()} == {1}
    assert sorted(norm > 0 for norm in trainer._norms) == [False, False, True]


def test_minibatches_have_every_row_once_an_epoch() -> None:
    generator = random.Random(0)
    for _ in range(50):
        updates, epochs = generator.randint(1, 4), generator.randint(1, 3)
        sizes = [generator.randint(1, 5) for _ in range(updates * generator.randint(1, 3))]
        found = minibatches(sizes, updates, epochs, seed=generator.randint(0, 9))
        assert len(found) == updates * epochs
        for epoch in range(epochs):
            rows = [row for minibatch in found[epoch * updates : (epoch + 1) * updates] for row in minibatch]
            assert sorted(rows) == list(range(sum(sizes)))
        starts = [sum(sizes[:g]) for g in range(len(sizes))]
        for minibatch in found:
            held = [g for g, start in enumerate(starts) if start in minibatch]
            assert minibatch == [row for g in held for row in range(starts[g], starts[g] + sizes[g])]
            assert len(held) == len(sizes) // updates
    assert minibatches([2, 3], 1, 1, seed=5) == [[0, 1, 2, 3, 4]]
    with pytest.raises(ValueError, match="3 groups cannot be cut into 2"):
        minibatches([1, 1, 1], 2, 1, seed=0)


def test_turn_gradients_are_parts_of_the_whole(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    """The norm of the one turn that trains in a batch is the whole norm; and measuring changes nothing."""
    (whole,), hooks = gradients(tiny_model, tiny_tokenizer, tmp_path / "plain")
    (again,), measured = gradients(tiny_model, tiny_tokenizer, tmp_path / "measured", turn_gradients=True)
    assert torch.equal(whole, again)
    (plain,), (facts,) = hooks.facts, measured.facts
    assert plain.turn_norms == () and len(facts.turn_norms) == 2 and min(facts.turn_norms) > 0
    assert abs(facts.turn_norms[0] - facts.turn_norms[1]) < facts.grad_norm < sum(facts.turn_norms)
    assert (facts.entropy, facts.loss) == (plain.entropy, plain.loss)
    assert facts.numbers()["grad_norm_turn_2"] == facts.turn_norms[1]
    settings = {"turn_gradients": True, "learning_rate": 0.0}
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path / "second", RejectFirstTurns([]), **settings)
    trainer.train()
    (facts,) = hooks.facts
    assert facts.turn_norms == (0.0, pytest.approx(facts.grad_norm, rel=1e-6))


def test_old_log_probabilities_are_found_once_per_batch(
    tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    find = KernelGRPOTrainer._logprobs

    def note(self: KernelGRPOTrainer, model: Any, output: Any) -> torch.Tensor:
        asked.append(self.state.global_step)
        return find(self, model, output)

    monkeypatch.setattr(KernelGRPOTrainer, "_logprobs", note)
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, updates=2, epochs=3, steps=2)
    trainer.train()
    assert asked == [0, 1]
