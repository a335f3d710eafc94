"""The loss, its gradient and the log-probabilities of the trainer, against plain forward passes and arithmetic by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from algorithms.mrs import MRS
from algorithms.tis import TIS
from algorithms.void_turns import VoidTurns
from rlkernel.interfaces import Correction
from rlkernel.training.batch import pad_rows
from rlkernel.training.packing import PACKED
from tests.training.trainer_doubles import PROBLEMS, RejectFirstTurns, batch_of, make_groups, make_trainer, sampled_logprobs


def test_loss_and_gradient_equal_a_hand_computation(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    temperature = 0.8
    # One by one through plain forward passes: minus the sum over sampled tokens of advantage times log-probability, whose
    # gradient is that of the clipped objective at ratio 1, over the 6 turns.
    objective = torch.tensor(0.0)
    expected_loss = 0.0
    for group in make_groups(PROBLEMS):
        for trajectory, advantages in zip(group.trajectories, ((2.5, 2.0), (-2.5,)), strict=True):
            for logprobs, advantage in zip(sampled_logprobs(tiny_model, trajectory, temperature), advantages, strict=True):
                objective = objective - advantage * logprobs.sum() / 6
                expected_loss -= advantage * len(logprobs) / 6
    objective.backward()
    names = ("model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.up_proj.weight", "model.embed_tokens.weight")
    expected = {name: tiny_model.get_parameter(name).grad.clone() for name in names}
    tiny_model.zero_grad()

    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, micro_tokens=18, temperature=temperature)
    output = batch_of(trainer)
    loss = 0.0
    # Two micro-batches, as gradient accumulation would take them: the denominator is that of the whole batch.
    for rows in (slice(0, 2), slice(2, 4)):
        part = {key: value[rows] if value.dim() else value for key, value in output.items()}
        micro = trainer.compute_loss(trainer.model, part)
        micro.backward()
        loss += micro.item()
    # At ratio 1 the loss is minus the mean over turns of advantage times tokens:
    # (2 * 2.5 + 3 * 2 - 3 * 2.5) * 2 groups / 6 turns = 7/6
    assert expected_loss == pytest.approx(-7 / 6)
    assert loss == pytest.approx(-7 / 6, abs=1e-5)
    for name in names:
        torch.testing.assert_close(tiny_model.get_parameter(name).grad, expected[name], atol=1e-5, rtol=1e-4)


def test_clipping_is_asymmetric_and_per_token(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    inputs = batch_of(trainer)
    logprobs = trainer._logprobs(trainer.model, inputs)
    # Every ratio is 1.5: positive advantages are clipped to 1.28, negative ones keep 1.5 (the smaller objective).
    inputs["old_per_token_logps"] = logprobs - torch.log(torch.tensor(1.5))
    loss = trainer.compute_loss(trainer.model, inputs).item()
    # per group: 1.28 * (2 * 2.5 + 3 * 2) - 1.5 * 3 * 2.5 = 14.08 - 11.25 = 2.83; two groups over 6 turns
    assert loss == pytest.approx(-2 * 2.83 / 6, abs=1e-4)
    # Every ratio is 0.5: negative advantages are clipped to 0.8: 0.5 * 11 - 0.8 * 7.5 = -0.5
    inputs["old_per_token_logps"] = logprobs + torch.log(torch.tensor(2.0))
    assert trainer.compute_loss(trainer.model, inputs).item() == pytest.approx(2 * 0.5 / 6, abs=1e-4)


def test_rejected_turns_leave_loss_and_denominator(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, RejectFirstTurns(seen))
    output = batch_of(trainer)
    # The two second turns are left: 3 tokens of advantage 2 each.
    assert output["num_items_in_batch"].item() == 2
    assert trainer.compute_loss(trainer.model, output).item() == pytest.approx(-(2 * 3 * 2) / 2, abs=1e-5)
    for group, shown in zip(make_groups(PROBLEMS), seen, strict=True):
        for trajectory, ratios_TL in zip(group.trajectories, shown, strict=True):
            with torch.no_grad():
                expected = sampled_logprobs(tiny_model, trajectory, 1.0)
            for turn, got, wanted in zip(trajectory.turns, ratios_TL, expected, strict=False):
                wanted = wanted.double() - torch.tensor(turn.completion.logprobs, dtype=torch.float64)
                torch.testing.assert_close(got[: len(wanted)], wanted, atol=1e-5, rtol=1e-5)


def test_rejected_tokens_leave_loss_and_denominator(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    """MRS at its `token` level, against one plain forward pass per trajectory."""
    cases: list[tuple[float, torch.Tensor, torch.Tensor]] = []  # advantage, log-probabilities, log-ratios of a turn's tokens
    for group in make_groups(PROBLEMS):
        for trajectory, advantages in zip(group.trajectories, ((2.5, 2.0), (-2.5,)), strict=True):
            found = sampled_logprobs(tiny_model, trajectory, 1.0)
            for turn, logprobs, advantage in zip(trajectory.turns, found, advantages, strict=True):
                ratios = logprobs.detach() - torch.tensor(turn.completion.logprobs)
                cases.append((advantage, logprobs, ratios))
    # Halfway between two neighbours among the ratios, such that turns are rejected as a whole, in part and not at all.
    low, high = torch.cat([ratios for _, _, ratios in cases]).sort().values[6:8].tolist()
    bound = (low + high) / 2
    assert high - low > 1e-3
    kept = [(advantage, logprobs[ratios > bound]) for advantage, logprobs, ratios in cases]
    turns = sum(len(logprobs) > 0 for _, logprobs in kept)
    parts = {len(logprobs) / len(whole) for (_, logprobs), (_, whole, _) in zip(kept, cases, strict=True)}
    assert {0.0, 1.0} < parts, parts
    objective = sum((-advantage * logprobs.sum() / turns for advantage, logprobs in kept), torch.tensor(0.0))
    objective.backward()
    weight = tiny_model.model.embed_tokens.weight
    expected = weight.grad.clone()
    tiny_model.zero_grad()

    mrs = MRS(level="token", low=math.exp(bound), high=math.inf, veto=None)
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, mrs)
    output = batch_of(trainer)
    assert output["num_items_in_batch"].item() == turns
    assert output["tool_mask"].sum().item() == sum(len(logprobs) for _, logprobs in kept)
    loss = trainer.compute_loss(trainer.model, output)
    loss.backward()
    assert loss.item() == pytest.approx(-sum(a * len(logprobs) for a, logprobs in kept) / turns, abs=1e-5)
    torch.testing.assert_close(weight.grad, expected, atol=1e-5, rtol=1e-4)


def test_weights_multiply_the_loss_of_their_tokens_and_leave_the_denominator(
    tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    """TIS at its `token` level, truncated so that it bites, against one plain forward pass per trajectory."""
    cases: list[tuple[float, torch.Tensor, torch.Tensor]] = []  # advantage, log-probabilities, ratios of a turn's tokens
    for group in make_groups(PROBLEMS):
        for trajectory, advantages in zip(group.trajectories, ((2.5, 2.0), (-2.5,)), strict=True):
            found = sampled_logprobs(tiny_model, trajectory, 1.0)
            for turn, logprobs, advantage in zip(trajectory.turns, found, advantages, strict=True):
                cases.append((advantage, logprobs, (logprobs.detach() - torch.tensor(turn.completion.logprobs)).exp()))
    high = torch.cat([ratios for *_, ratios in cases]).median().item()
    weighted = [(advantage * ratios.clamp(max=high), logprobs) for advantage, logprobs, ratios in cases]
    objective = sum((-(advantages * logprobs).sum() / 6 for advantages, logprobs in weighted), torch.tensor(0.0))
    objective.backward()
    weight = tiny_model.model.embed_tokens.weight
    expected = weight.grad.clone()
    tiny_model.zero_grad()

    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, TIS(high=high))
    output = batch_of(trainer)
    # All 6 turns and all 16 tokens train.
    assert (output["num_items_in_batch"].item(), output["tool_mask"].sum().item()) == (6, 16)
    loss = trainer.compute_loss(trainer.model, output)
    loss.backward()
    assert loss.item() == pytest.approx(-sum(float(advantages.sum()) for advantages, _ in weighted) / 6, rel=1e-4)
    torch.testing.assert_close(weight.grad, expected, atol=1e-5 * high, rtol=1e-4)


def test_the_weights_of_a_step_are_in_its_facts(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    for name, correction, expected in (
        # 6 of the 16 tokens are of second turns; weights of 0 and 1 are worth the share of the ones.
        ("drop", RejectFirstTurns([]), 6 / 16),
        # Truncated far below every ratio, all weights are equal.
        ("equal", TIS(high=1e-6), 1.0),
    ):
        trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path / name, correction)
        trainer.train()
        assert hooks.facts[0].effective_tokens == pytest.approx(expected)


def test_a_rejected_token_stays_as_context(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, RejectFirstTurns([]))
    output = batch_of(trainer)
    # Attention sees the completion; only the loss does not.
    tokens = pad_rows(make_groups(PROBLEMS), tiny_tokenizer.pad_token_id)
    assert torch.equal(output["completion_mask"], tokens.completion_mask_BC)


def test_an_advantage_counts_where_it_is_filled(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    output = batch_of(trainer)
    masked = output["tool_mask"] == 0

    def gradient(advantages: torch.Tensor) -> torch.Tensor:
        tiny_model.zero_grad()
        trainer.compute_loss(trainer.model, {**output, "advantages": advantages}).backward()
        return tiny_model.model.embed_tokens.weight.grad.clone()

    own = gradient(output["advantages"])
    assert torch.equal(gradient(output["advantages"].masked_fill(masked, 1e3)), own)
    moved = output["advantages"].clone()
    moved[0, 3] += 1.0  # a sampled token of the second turn
    assert not torch.allclose(gradient(moved), own, atol=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 0.8])
@pytest.mark.parametrize("micro_tokens", [64, 18, 1])
def test_log_probabilities_are_those_of_a_plain_forward_pass(
    micro_tokens: int, temperature: float, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, micro_tokens=micro_tokens, temperature=temperature)
    output = batch_of(trainer)
    found = trainer._logprobs(trainer.model, output)
    tokens = pad_rows(make_groups(PROBLEMS), tiny_tokenizer.pad_token_id)
    assert found.shape == tokens.completion_ids_BC.shape
    trajectories = [trajectory for group in make_groups(PROBLEMS) for trajectory in group.trajectories]
    # Prompts of 3 and of 2 tokens, so that rows move by different numbers of columns.
    assert {len(row.prompt_ids) for row in tokens.rows} == {2, 3}
    for trajectory, row, found_C in zip(trajectories, tokens.rows, found, strict=True):
        with torch.no_grad():
            expected = sampled_logprobs(tiny_model, trajectory, temperature)
        for (start, end), wanted in zip(row.spans, expected, strict=True):
            torch.testing.assert_close(found_C[start:end], wanted, atol=1e-5, rtol=1e-5)
    assert found[~tokens.completion_mask_BC.bool()].abs().max() == 0


def test_the_mismatch_is_measured_in_the_layout_that_is_trained(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, RejectFirstTurns([]), micro_tokens=18)
    passes: list[tuple[int, str]] = []
    embedding = tiny_model.model.embed_tokens
    model = tiny_model
    embedding.register_forward_hook(lambda _, args, output: passes.append((output.shape[1], model.config._attn_implementation)))
    trainer.train()
    # Rows of 9, 6, 9 and 5 tokens: 9 + 6 and 9 + 5 to measure, and 9 + 9 that train.
    assert passes == [(15, PACKED), (14, PACKED), (18, PACKED)]
    assert tiny_model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("staleness", [0, 1])
def test_the_mismatch_is_of_sampled_tokens_alone(staleness: int, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    differences = [
        now - then
        for group in make_groups(PROBLEMS)
        for trajectory in group.trajectories
        for turn, logprobs in zip(trajectory.turns, sampled_logprobs(tiny_model, trajectory, 1.0), strict=True)
        for now, then in zip(logprobs.tolist(), turn.completion.logprobs, strict=True)
    ]
    # Rows of unequal length in several micro-batches; without staleness, their log-probabilities are those of the loss's pass.
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, staleness=staleness, micro_tokens=18)
    trainer.train()
    # 2 + 3 + 3 tokens of each problem; not the feedback between two turns.
    assert len(differences) == 16
    mismatch = hooks.facts[0].mismatch
    assert mismatch is not None
    assert mismatch.absolute == pytest.approx(sum(map(abs, differences)) / 16, abs=1e-5)
    # k1 is the mean of rollout minus training, k3 that of exp(d) - 1 - d with d the negative of it.
    assert mismatch.k1 == pytest.approx(-sum(differences) / 16, abs=1e-5)
    assert mismatch.k3 == pytest.approx(sum(math.exp(d) - 1 - d for d in differences) / 16, abs=1e-5)


@pytest.mark.parametrize(("rejection", "passes"), [(MRS(), 2), (VoidTurns(), 1), (None, 1)])
def test_only_a_rejection_that_compares_costs_a_forward_pass(
    rejection: Correction | None, passes: int, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    # MRS keeps everything, so that everything is trained.
    chosen = [replace(rejection, low=0.0, high=math.inf, veto=None) if isinstance(rejection, MRS) else rejection]
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, *(each for each in chosen if each is not None))
    seen: list[int] = []
    tiny_model.model.embed_tokens.register_forward_hook(lambda module, args, output: seen.append(output.shape[1]))
    trainer.train()
    assert seen == [29] * passes  # 9 + 6 + 9 + 5 tokens
    # It is known all the same, from the pass of the loss, but where nothing trains.
    assert (hooks.facts[0].mismatch is None) == (hooks.facts[0].trained_tokens == 0)
