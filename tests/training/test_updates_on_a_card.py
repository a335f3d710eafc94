"""The loss with all of its terms on a GPU, where matrix products are bfloat16 and TRL's projection is a Triton kernel."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from rlkernel.settings import Loss
from tests.training.trainer_doubles import PROBLEMS, make_groups, make_trainer, sampled_logprobs

pytestmark = pytest.mark.gpu


def test_loss_and_diagnostics_agree_with_plain_forward_passes(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    plain = copy.deepcopy(tiny_model)
    entropy = 0.0
    with torch.no_grad():
        for group in make_groups(PROBLEMS):
            for trajectory in group.trajectories:
                ids = [token for turn in trajectory.turns for token in (*turn.context_ids, *turn.completion.token_ids)]
                logprobs = plain(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
                at = 0
                for turn in trajectory.turns:
                    start, at = at + len(turn.context_ids), at + len(turn.context_ids) + len(turn.completion.token_ids)
                    entropy -= (logprobs[start - 1 : at - 1].exp() * logprobs[start - 1 : at - 1]).sum().item()
        differences = [
            now - then
            for group in make_groups(PROBLEMS)
            for trajectory in group.trajectories
            for turn, logprobs in zip(trajectory.turns, sampled_logprobs(plain, trajectory, 1.0), strict=True)
            for now, then in zip(logprobs.tolist(), turn.completion.logprobs, strict=True)
        ]
    loss = Loss(ratio="turn", beta=0.1, entropy=0.05)
    settings = {"updates": 2, "learning_rate": 0.0, "turn_gradients": True}
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, loss=loss, **settings)
    trainer.train()
    (facts,) = hooks.facts
    # At ratio 1 and without a distance from the reference: -7/6 (test_trainer_loss.py), and the bonus.
    assert facts.loss == pytest.approx(-7 / 6 - 0.05 * entropy / 6, rel=2e-2)
    assert facts.entropy == pytest.approx(entropy / 16, rel=2e-2)
    assert facts.kl_reference == pytest.approx(0.0, abs=1e-3) and facts.clip_fraction < 0.2
    assert facts.mismatch is not None
    assert facts.mismatch.k1 == pytest.approx(-sum(differences) / 16, rel=2e-2)
    assert len(facts.turn_norms) == 2 and min(facts.turn_norms) > 0


def test_epochs_move_the_policy_until_it_is_clipped(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    loss = Loss(ratio="sequence", beta=0.01)
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, loss=loss, epochs=4, learning_rate=1e-2, steps=2)
    trainer.train()
    first, second = hooks.facts
    assert first.clip_fraction > 0.05 and second.clip_fraction > 0.05
    assert second.kl_reference is not None and second.kl_reference > 0.01
