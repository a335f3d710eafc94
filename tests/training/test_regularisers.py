"""What a run adds to the loss and to the optimiser, each by its effect and, where it is a formula, against that."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from algorithms.tis import TIS
from rlkernel.policy.load import add_lora
from rlkernel.settings import Kind, Loss, Optimiser, Ratio
from rlkernel.training.loss_trainer import OLD, kl_from_reference
from rlkernel.types import Trajectory
from tests.training.trainer_doubles import PROBLEMS, batch_of, make_groups, make_trainer, make_turn, sampled_logprobs


def moved(model: Any, scale: float = 0.05) -> None:
    """Move the weights away from where they were, as training would."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += scale * torch.randn(parameter.shape, generator=generator)


def gradient(
    trainer: Any, output: dict[str, torch.Tensor], rows: tuple[slice, ...] = (slice(0, 4),)
) -> tuple[float, torch.Tensor]:
    """Loss and gradient of the embeddings, a micro-batch per slice."""
    weight = trainer.model.model.embed_tokens.weight
    trainer.model.zero_grad()
    loss = 0.0
    for part in rows:
        found = trainer.compute_loss(
            trainer.model, {name: value[part] if value.dim() else value for name, value in output.items()}
        )
        found.backward()
        loss += found.item()
    return loss, weight.grad.clone()


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_the_kl_from_the_start_is_k3_with_an_unbiased_gradient(
    beta: float, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    trajectories = [trajectory for group in make_groups(PROBLEMS) for trajectory in group.trajectories]
    with torch.no_grad():
        reference = [sampled_logprobs(tiny_model, trajectory, 0.8) for trajectory in trajectories]
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, loss=Loss(beta=beta), temperature=0.8)
    moved(tiny_model)
    # Per token -A log pi + beta r (rho - 1 - log rho), with r = pi / its own value, over the 6 turns.
    objective, tokens, kl = torch.tensor(0.0), 0, 0.0
    for i, trajectory in enumerate(trajectories):
        advantages = ((2.5, 2.0), (-2.5,))[i % 2]
        for now, then, advantage in zip(sampled_logprobs(tiny_model, trajectory, 0.8), reference[i], advantages, strict=True):
            d, r = then - now, (now - now.detach()).exp()
            k3 = r * (d.exp() - 1 - d)
            objective = objective + (-advantage * r + beta * k3).sum() / 6
            kl, tokens = kl + k3.sum().item(), tokens + len(now)
    objective.backward()
    weight = tiny_model.model.embed_tokens.weight
    expected = weight.grad.clone()
    output = batch_of(trainer)
    # In two micro-batches: their terms add up.
    loss, found = gradient(trainer, output, (slice(0, 2), slice(2, 4)))
    assert loss == pytest.approx(objective.item(), abs=1e-4)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)
    trainer.train()
    (facts,) = hooks.facts
    assert facts.kl_reference == (pytest.approx(kl / tokens, rel=1e-3) if beta else None)
    assert kl / tokens > 1e-3


def test_the_gradient_of_the_kl_is_unbiased_for_old_samples_that_are_weighed() -> None:
    """Summed over the five tokens of a policy: q has sampled, pi_old was before the first update, pi is now. E_q[w r k3] with
    w = pi_old / q has the gradient of KL(pi || pi_ref); without w it is that of no policy in particular."""
    q, old, now, reference = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).log_softmax(1)
    logits = now.clone().requires_grad_()
    logprobs = logits.log_softmax(0)
    (truth,) = torch.autograd.grad((logprobs.exp() * (logprobs - reference)).sum(), logits, retain_graph=True)
    kl = kl_from_reference(logprobs, old, reference, torch.ones(5))
    (weighed,) = torch.autograd.grad((q.exp() * (old - q).exp() * kl).sum(), logits, retain_graph=True)
    (alone,) = torch.autograd.grad((q.exp() * kl).sum(), logits)
    torch.testing.assert_close(weighed, truth, atol=1e-12, rtol=0)
    assert (alone - truth).norm() > 0.3 * truth.norm()


@pytest.mark.parametrize(("kind", "ratio"), [("clip", "token"), ("clip", "sequence"), ("cispo", "turn"), ("reinforce", "token")])
def test_weights_multiply_the_kl_whose_ratio_is_the_tokens_own(
    kind: Kind, ratio: Ratio, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    """Also where the loss itself has no ratio: in later updates, samples are those of the policy before the first."""
    settings = {"loss": Loss(kind, ratio, beta=0.5), "epochs": 2}
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, TIS(low=0.25, high=0.25), **settings)
    output = batch_of(trainer)
    old = OLD if kind == "reinforce" else "old_per_token_logps"
    output[old] = output[old] - 0.3 * (output["turns"] == 1)
    without, _ = gradient(trainer, output)
    output["ref_per_token_logps"] = output["ref_per_token_logps"] - 0.7
    found, _ = gradient(trainer, output)
    # 16 tokens, of which the 10 of first turns have r = exp(0.3); rho is exp(-0.7) everywhere.
    kl = (10 * math.exp(0.3) + 6) / 16 * (math.exp(-0.7) - 1 + 0.7)
    assert trainer._metrics["train"]["kl"] == pytest.approx([0.0, kl], rel=1e-4, abs=1e-6)
    # The weight times beta, over the 6 turns.
    assert found - without == pytest.approx(0.25 * 0.5 * kl * 16 / 6, rel=1e-4)


def test_the_kl_is_finite_where_a_prompt_is_impossible(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    """Prompts of two lengths: the end of the longer one is among the columns of completions. Nothing is asked of the reference
    there, and exp of 0 minus the prompt's log-probability is infinite in float32."""
    with torch.no_grad():
        for ids in ((10, 11, 12), (11, 12)):
            prompt = Trajectory(PROBLEMS[0], (make_turn(ids[:1], ids[1:], 0.0),))
            assert min(map(float, sampled_logprobs(tiny_model, prompt, 0.003)[0])) < -89
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, loss=Loss(beta=0.1), temperature=0.003)
    output = batch_of(trainer)
    assert sorted(set(output["prompt_mask"].sum(1).tolist())) == [2, 3]
    loss, found = gradient(trainer, output)
    assert math.isfinite(loss) and bool(found.isfinite().all())


def test_the_reference_of_adapters_is_the_model_without_them(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    with torch.no_grad():
        reference = [sampled_logprobs(tiny_model, t, 1.0) for group in make_groups(PROBLEMS) for t in group.trajectories]
    model = add_lora(tiny_model, 4, 8.0)
    trainer, _ = make_trainer(model, tiny_tokenizer, tmp_path, loss=Loss(beta=0.1), lora_rank=4)
    moved(model)
    output = batch_of(trainer)
    for b, turns in enumerate(reference):
        for (start, end), expected in zip(trainer._tokens.rows[b].spans, turns, strict=True):  # type: ignore[union-attr]
            torch.testing.assert_close(output["ref_per_token_logps"][b, start:end], expected, atol=1e-5, rtol=1e-5)
    now = trainer._logprobs(trainer.model, output)
    assert (now - output["ref_per_token_logps"]).abs().max() > 1e-2
    assert trainer._reference._copy is None


def test_the_bonus_is_the_entropy_of_every_trained_token(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    coefficient = 0.3
    plain, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path / "plain")
    loss, without = gradient(plain, batch_of(plain))
    tiny_model.zero_grad()
    entropy = torch.tensor(0.0)
    for group in make_groups(PROBLEMS):
        for trajectory in group.trajectories:
            ids = [token for turn in trajectory.turns for token in (*turn.context_ids, *turn.completion.token_ids)]
            logprobs = tiny_model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
            at = 0
            for turn in trajectory.turns:
                start, at = at + len(turn.context_ids), at + len(turn.context_ids) + len(turn.completion.token_ids)
                entropy = entropy - (logprobs[start - 1 : at - 1].exp() * logprobs[start - 1 : at - 1]).sum()
    (-coefficient * entropy / 6).backward()
    weight = tiny_model.model.embed_tokens.weight
    expected = without + weight.grad
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path / "bonus", loss=Loss(entropy=coefficient))
    # Whatever the micro-batches: TRL's own bonus is a mean over each of them.
    for rows in ((slice(0, 4),), (slice(0, 1), slice(1, 4))):
        found, with_bonus = gradient(trainer, batch_of(trainer), rows)
        assert found == pytest.approx(loss - coefficient * entropy.item() / 6, rel=1e-4)
        torch.testing.assert_close(with_bonus, expected, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize(
    ("optimiser", "rates"),
    [
        (Optimiser(), [1.0, 1.0, 1.0, 1.0]),
        (Optimiser(warmup=2), [0.5, 1.0, 1.0, 1.0]),
        # Half a cosine over four steps: cos(0), cos(pi/4), 0, cos(3 pi/4), moved to between 0 and 1.
        (Optimiser(decay="cosine"), [1.0, (1 + math.sqrt(0.5)) / 2, 0.5, (1 - math.sqrt(0.5)) / 2]),
        (Optimiser(warmup=2, decay="cosine"), [0.5, 1.0, 1.0, 0.5]),
    ],
)
def test_the_learning_rate_goes_by_steps(
    optimiser: Optimiser, rates: list[float], tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    settings = {"optimiser": optimiser, "steps": 4, "epochs": 2 if optimiser.warmup else 1}
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, **settings)
    trainer.train()
    assert [facts.learning_rate for facts in hooks.facts] == pytest.approx([1e-3 * rate for rate in rates])


def test_weight_decay_shrinks_matrices_alone(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    names = ("model.layers.0.mlp.up_proj.weight", "model.layers.0.input_layernorm.weight")
    start = {name: tensor.clone() for name, tensor in tiny_model.state_dict().items()}
    after = {}
    for decay in (0.0, 5.0):
        tiny_model.load_state_dict(start)
        trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path / str(decay), optimiser=Optimiser(weight_decay=decay))
        trainer.train()
        after[decay] = {name: tiny_model.get_parameter(name).detach().clone() for name in names}
    matrix, norm = names
    # AdamW takes learning rate * decay = 1e-3 * 5 of the weights, beside the same step.
    torch.testing.assert_close(after[5.0][matrix], after[0.0][matrix] - 5e-3 * start[matrix], atol=1e-6, rtol=1e-5)
    assert torch.equal(after[5.0][norm], after[0.0][norm])


def test_plain_gradient_descent_moves_by_rate_times_gradient(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    start = {name: tensor.clone() for name, tensor in tiny_model.state_dict().items()}
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path / "gradient")
    _, of_embedding = gradient(trainer, batch_of(trainer), (slice(0, 4),))
    tiny_model.zero_grad()
    trainer, _ = make_trainer(
        tiny_model, tiny_tokenizer, tmp_path / "sgd", optimiser=Optimiser("sgd"), max_grad_norm=0.0, learning_rate=1.0
    )
    trainer.train()
    name = "model.embed_tokens.weight"
    torch.testing.assert_close(tiny_model.get_parameter(name).detach(), start[name] - of_embedding, atol=1e-6, rtol=1e-4)


def test_settings_that_make_no_sense_are_refused_in_one_line(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    for make, said in (
        (lambda: Loss("ppo"), "Loss.kind is 'ppo': use one of clip, cispo, reinforce"),  # type: ignore[arg-type]
        (lambda: Loss(ratio="word"), "Loss.ratio is 'word': use one of token, turn, sequence"),  # type: ignore[arg-type]
        (lambda: Loss("reinforce", "turn"), "Loss.ratio is 'turn', but the kind 'reinforce' has no ratio"),
        (lambda: Loss(beta=-0.1), r"Loss.beta is -0.1: it must be a number that is not negative"),
        (lambda: Optimiser(decay="linear"), "Optimiser.decay is 'linear': use one of constant, cosine"),  # type: ignore[arg-type]
        (lambda: Optimiser("adam"), "Optimiser.rule is 'adam': use one of adamw, sgd"),  # type: ignore[arg-type]
        (
            lambda: replace(trainer._run, optimiser=Optimiser("sgd"), weights="bfloat16"),
            "Run.weights is 'bfloat16' and Optimiser.rule 'sgd'",
        ),
        (lambda: replace(trainer._run, optimiser=Optimiser(warmup=2)), "Optimiser.warmup is 2 and Run.steps 1"),
        (lambda: replace(trainer._run, updates=4), "Run.updates is 4 and Run.prompts_per_step 2: every update takes"),
        (lambda: replace(trainer._run, epochs=0), "Run.epochs is 0: it must be a whole number of at least 1"),
    ):
        with pytest.raises(ValueError, match=said) as refused:
            make()
        assert "\n" not in str(refused.value)
