"""What we rely on in TRL 1.16.0, seam by seam. A new version of TRL is safe to take when these pass.

`_generate_and_score_completions(inputs) -> dict`: test_generate_and_score_returns_our_tensors
`rollout_func(prompts, trainer)`: test_rollout_func_gets_every_prompt_once_per_rollout
`_get_per_token_logps_and_entropies`: test_log_probabilities_are_those_of_a_plain_forward_pass,
    test_the_mismatch_is_measured_in_the_layout_that_is_trained
advantages of shape (B, C) in the `dapo` loss: test_loss_and_gradient_..., test_an_advantage_counts_where_it_is_filled
`tool_mask` and `num_items_in_batch`: test_rejected_turns_..., test_rejected_tokens_..., test_a_fully_rejected_batch_...
`old_per_token_logps`, asymmetric clipping: test_clipping_is_asymmetric_and_per_token
`training_step`, `_prepare_inputs` and what TRL would cut: test_micro_batches_hold_every_row_that_trains_once,
    test_the_loss_does_not_depend_on_the_micro_batches
`compute_loss` with another padding: test_our_layout_gives_the_loss_of_trls_layout
`_metrics` and the logged names: test_trl_logs_the_names_that_a_step_is_reported_with
a step without a gradient, `on_pre_optimizer_step`: test_a_fully_rejected_batch_changes_nothing
what of the run reaches the batch: test_draws_of_rejections_..., test_every_rejection_..., test_gamma_of_the_run_discounts
callbacks, log before save, and checkpoints: test_steps_are_reported_before_their_checkpoint
the configuration: test_one_process_uses_one_device, test_weights_and_optimiser_stay_float32_on_the_cpu
the fused projection, gradient checkpointing: test_logits_of_a_micro_batch_..., test_activations_are_recomputed_...
errors inside a step: test_an_error_in_the_hooks_ends_training
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
import trl

from algorithms.hrd import HRD
from algorithms.mrs import MRS
from algorithms.speed_reward import SpeedReward
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from algorithms.void_turns import VoidTurns
from rlkernel.config import Run
from rlkernel.interfaces import Environment, Rejection, Removes
from rlkernel.runs.directory import COMPLETE
from rlkernel.training.batch import pad_rows
from rlkernel.training.micro_batches import CAUSAL, left_align
from rlkernel.training.trainer import KernelGRPOTrainer, StepFacts
from rlkernel.types import Completion, Evaluation, Group, Problem, Status, Trajectory, Turn

PROBLEMS = tuple(Problem(f"p{i}", 1, "train", "") for i in range(2))


@dataclass(frozen=True)
class NoEnvironment:
    """Rollouts are scripted, so nobody asks."""

    def prompt(self, problem: Problem) -> str:
        raise NotImplementedError

    extract = feedback = prompt  # type: ignore[assignment]


def make_turn(context: tuple[int, ...], sampled: tuple[int, ...], reward: float) -> Turn:
    completion = Completion(sampled, tuple(-float(token) / 100 for token in sampled), "", "stop")
    return Turn(context, completion, None, Evaluation(Status.INCORRECT, ""), reward, "")


def make_groups(problems: Sequence[Problem]) -> tuple[Group, ...]:
    """Two trajectories each: two turns with feedback between them, and one turn."""
    return tuple(
        Group(
            problem,
            (
                Trajectory(problem, (make_turn((10, 11, 12), (20, 21 + i), 1.0), make_turn((30,), (40, 41, 42), 2.0))),
                Trajectory(problem, (make_turn((10, 11, 12)[i:], (50, 51, 52), 0.5),)),
            ),
        )
        for i, problem in enumerate(problems)
    )


@dataclass
class ScriptedHooks:
    """A test double of the loop."""

    asked: list[int] = field(default_factory=list)
    facts: list[StepFacts] = field(default_factory=list)
    checks: int = 0
    turns: int = 0

    def rollout(self, step: int) -> tuple[Group, ...]:
        self.asked.append(step)
        return make_groups(PROBLEMS)

    def step_done(self, facts: StepFacts) -> None:
        self.facts.append(facts)

    def check_cancelled(self) -> None:
        self.checks += 1

    @contextmanager
    def lease(self) -> Iterator[None]:
        self.turns += 1
        yield

    def save(self, directory: Path) -> None:
        assert not (directory / COMPLETE).exists()  # it is not, before this is saved
        (directory / "saved").touch()


@dataclass(frozen=True)
class RejectFromSecondStep:
    """Keeps the two groups of the first step, and nothing afterwards."""

    asked: list[Group]
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __call__(self, group: Group, log_ratios_KTL: Any, kept_KTL: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        self.asked.append(group)
        return torch.full(kept_KTL.shape, len(self.asked) <= 2)


@dataclass(frozen=True)
class RejectFirstTurns:
    """Keeps only second turns; records the log-ratios that it was shown."""

    seen: list[Any]
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __call__(self, group: Group, log_ratios_KTL: Any, kept_KTL: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        self.seen.append(log_ratios_KTL)
        keep = torch.zeros(kept_KTL.shape, dtype=torch.bool)
        keep[:, 1] = True
        return keep


@dataclass(frozen=True)
class RecordSeed:
    """Keeps everything; records the seed of its draws."""

    seeds: list[int]
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __call__(self, group: Group, log_ratios_KTL: Any, kept_KTL: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        self.seeds.append(generator.initial_seed())
        return torch.ones(kept_KTL.shape, dtype=torch.bool)


def make_trainer(
    model: Any, tokenizer: Any, directory: Path, *rejections: Rejection, micro_tokens: int = 64, steps: int = 1, **changes: Any
) -> tuple[KernelGRPOTrainer, ScriptedHooks]:
    environment: Environment = NoEnvironment()
    run = Run(
        "test",
        PROBLEMS,
        environment,
        SpeedReward(),
        TRLOO(),
        UniformCredit(),
        rejections=rejections,
        prompts_per_step=2,
        rollouts=2,
        turns=2,
        steps=steps,
        learning_rate=1e-3,
    )
    hooks = ScriptedHooks()
    trainer = KernelGRPOTrainer(replace(run, **changes), model, tokenizer, hooks, directory, micro_tokens=micro_tokens)
    return trainer, hooks


def batch_of(trainer: KernelGRPOTrainer) -> dict[str, torch.Tensor]:
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    inputs = [{"prompt": f"p{i}"} for i in (0, 0, 1, 1)]
    return trainer._generate_and_score_completions(inputs)


def sampled_logprobs(model: Any, trajectory: Trajectory, temperature: float) -> list[torch.Tensor]:
    """Per turn, by an unpadded forward pass of the plain model."""
    ids: list[int] = []
    spans = []
    for turn in trajectory.turns:
        ids += turn.context_ids
        spans.append((len(ids), len(ids) + len(turn.completion.token_ids)))
        ids += turn.completion.token_ids
    logits = model(input_ids=torch.tensor([ids])).logits[0] / temperature
    logprobs = logits.log_softmax(-1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    return [logprobs[start - 1 : end - 1] for start, end in spans]


def test_version_is_the_one_that_was_checked() -> None:
    assert trl.__version__ == "1.16.0"


def test_generate_and_score_returns_our_tensors(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    output = batch_of(trainer)
    assert hooks.asked == [0]
    tokens = pad_rows(make_groups(PROBLEMS), tiny_tokenizer.pad_token_id)
    for key, expected in {
        "prompt_ids": tokens.prompt_ids_BP,
        "prompt_mask": tokens.prompt_mask_BP,
        "completion_ids": tokens.completion_ids_BC,
        "completion_mask": tokens.completion_mask_BC,
        "sampling_per_token_logps": tokens.rollout_logprobs_BC,
        "tool_mask": tokens.policy_mask_BC,
    }.items():
        assert torch.equal(output[key], expected), key
    # Returns to go 1 + 2 = 3 against 0.5, so ±2.5; the second turn is alone and keeps its return, 2.
    assert output["advantages"].tolist() == 2 * [[2.5, 2.5, 0.0, 2.0, 2.0, 2.0], [-2.5, -2.5, -2.5, 0.0, 0.0, 0.0]]
    assert output["num_items_in_batch"].item() == 6
    assert "old_per_token_logps" not in output


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
        micro = trainer.compute_loss(trainer.model, left_align(part))
        micro.backward()
        loss += micro.item()
    # At ratio 1 the loss is minus the mean over turns of advantage times tokens:
    # (2 * 2.5 + 3 * 2 - 3 * 2.5) * 2 groups / 6 turns = 7/6
    assert expected_loss == pytest.approx(-7 / 6)
    assert loss == pytest.approx(-7 / 6, abs=1e-5)
    for name in names:
        torch.testing.assert_close(tiny_model.get_parameter(name).grad, expected[name], atol=1e-5, rtol=1e-4)


def test_our_layout_gives_the_loss_of_trls_layout(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    output = batch_of(trainer)
    theirs = trl.GRPOTrainer.compute_loss(trainer, trainer.model, output)
    theirs.backward()
    gradient = tiny_model.model.embed_tokens.weight.grad.clone()
    tiny_model.zero_grad()
    ours = trainer.compute_loss(trainer.model, left_align(output))
    ours.backward()
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-5)
    torch.testing.assert_close(tiny_model.model.embed_tokens.weight.grad, gradient, atol=1e-5, rtol=1e-4)


def test_clipping_is_asymmetric_and_per_token(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    inputs = left_align(batch_of(trainer))
    logprobs, _, _ = trainer._get_per_token_logps_and_entropies(
        trainer.model,
        torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1),
        torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1),
        inputs["completion_ids"].shape[1],
    )
    # Every ratio is 1.5: positive advantages are clipped to 1.28, negative ones keep 1.5 (the smaller objective).
    inputs["old_per_token_logps"] = logprobs.detach() - torch.log(torch.tensor(1.5))
    loss = trainer.compute_loss(trainer.model, inputs).item()
    # per group: 1.28 * (2 * 2.5 + 3 * 2) - 1.5 * 3 * 2.5 = 14.08 - 11.25 = 2.83; two groups over 6 turns
    assert loss == pytest.approx(-2 * 2.83 / 6, abs=1e-4)
    # Every ratio is 0.5: negative advantages are clipped to 0.8: 0.5 * 11 - 0.8 * 7.5 = -0.5
    inputs["old_per_token_logps"] = logprobs.detach() + torch.log(torch.tensor(2.0))
    assert trainer.compute_loss(trainer.model, inputs).item() == pytest.approx(2 * 0.5 / 6, abs=1e-4)


def test_rejected_turns_leave_loss_and_denominator(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, RejectFirstTurns(seen))
    output = batch_of(trainer)
    # The two second turns are left: 3 tokens of advantage 2 each.
    assert output["num_items_in_batch"].item() == 2
    assert trainer.compute_loss(trainer.model, left_align(output)).item() == pytest.approx(-(2 * 3 * 2) / 2, abs=1e-5)
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
    loss = trainer.compute_loss(trainer.model, left_align(output))
    loss.backward()
    assert loss.item() == pytest.approx(-sum(a * len(logprobs) for a, logprobs in kept) / turns, abs=1e-5)
    torch.testing.assert_close(weight.grad, expected, atol=1e-5, rtol=1e-4)


def test_draws_of_rejections_differ_by_step_and_by_seed(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    seeds: list[int] = []
    for seed in (0, 1):
        trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path / str(seed), RecordSeed(seeds), steps=2, seed=seed)
        trainer.train()
    # Two steps of two groups, which share the step's generator; then again with the other seed.
    assert len(seeds) == 8
    assert [seeds[i] == seeds[i + 1] for i in (0, 2, 4, 6)] == [True] * 4
    assert len(set(seeds)) == 4


def test_every_rejection_of_the_run_is_asked(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    seeds: list[int] = []
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, RecordSeed(seeds), RejectFirstTurns([]))
    assert batch_of(trainer)["num_items_in_batch"].item() == 2
    assert len(seeds) == 2
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, RejectFirstTurns([]), RecordSeed(seeds))
    assert batch_of(trainer)["num_items_in_batch"].item() == 2
    assert len(seeds) == 4


def test_gamma_of_the_run_discounts(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, gamma=0.5)
    # 1 + 0.5 * 2 = 2 against 0.5.
    assert batch_of(trainer)["advantages"][:, 0].tolist() == [1.5, -1.5, 1.5, -1.5]


def test_a_rejected_token_stays_as_context(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, RejectFirstTurns([]))
    output = batch_of(trainer)
    # Attention sees the completion; only the loss does not.
    tokens = pad_rows(make_groups(PROBLEMS), tiny_tokenizer.pad_token_id)
    assert torch.equal(output["completion_mask"], tokens.completion_mask_BC)


def test_plan_and_code_tokens_have_their_own_advantages(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    """HRD with the trainer's tokenizer: "é" is two of its tokens."""
    text, code = "é def\nx + 1\n", "x + 1\n"
    ids = tuple(tiny_tokenizer(text, add_special_tokens=False).input_ids)

    def groups(step: int) -> tuple[Group, ...]:
        facts = (Evaluation(Status.CORRECT, "", speedup=2.0), Evaluation(Status.INCORRECT, ""))
        completion = Completion((*ids, tiny_tokenizer.eos_token_id), (-1.0,) * (len(ids) + 1), text, "stop")
        turns = [Turn((10,), completion, code, fact, 0.0, "") for fact in facts]
        return tuple(Group(problem, tuple(Trajectory(problem, (turn,)) for turn in turns)) for problem in PROBLEMS)

    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, credit=HRD(alpha=0.25))
    hooks.rollout = groups  # type: ignore[method-assign]
    plan = len(tiny_tokenizer("é def\n", add_special_tokens=False).input_ids)
    assert tiny_tokenizer.decode(ids[:plan]) == "é def\n"
    # r_code = 1 and 0: ±1; r_plan = 2 and 0: ±2, times 0.25.
    first = [0.5] * plan + [1.0] * (len(ids) + 1 - plan)
    assert batch_of(trainer)["advantages"].tolist() == 2 * [first, [-value for value in first]]


def test_an_advantage_counts_where_it_is_filled(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    output = batch_of(trainer)
    masked = output["tool_mask"] == 0

    def gradient(advantages: torch.Tensor) -> torch.Tensor:
        tiny_model.zero_grad()
        trainer.compute_loss(trainer.model, left_align({**output, "advantages": advantages})).backward()
        return tiny_model.model.embed_tokens.weight.grad.clone()

    own = gradient(output["advantages"])
    assert torch.equal(gradient(output["advantages"].masked_fill(masked, 1e3)), own)
    moved = output["advantages"].clone()
    moved[0, 3] += 1.0  # a sampled token of the second turn
    assert not torch.allclose(gradient(moved), own, atol=1e-4)


def test_rollout_func_gets_every_prompt_once_per_rollout(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    asked: list[list[str]] = []
    rows = trainer.rollout_func

    def record(prompts: list[str], *rest: Any) -> Any:
        asked.append(list(prompts))
        return rows(prompts, *rest)

    trainer.rollout_func = record
    batch_of(trainer)
    assert asked == [["p0", "p0", "p1", "p1"]]


@pytest.mark.parametrize("temperature", [1.0, 0.8])
@pytest.mark.parametrize("micro_tokens", [64, 18, 1])
def test_log_probabilities_are_those_of_a_plain_forward_pass(
    micro_tokens: int, temperature: float, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path, micro_tokens=micro_tokens, temperature=temperature)
    output = batch_of(trainer)
    found = trainer._train_logprobs(output)
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
    passes: list[tuple[bool, str]] = []
    forward = trainer._get_per_token_logps_and_entropies

    def record(model: Any, ids: torch.Tensor, mask: torch.Tensor, *rest: Any, **named: Any) -> Any:
        passes.append((bool(mask[:, 0].all()), model.config._attn_implementation))
        return forward(model, ids, mask, *rest, **named)

    trainer._get_per_token_logps_and_entropies = record
    trainer.train()
    # Two micro-batches to measure, the one of which rows train: without padding before the rows, with the same attention.
    assert passes == [(True, CAUSAL)] * 3
    assert tiny_model.config._attn_implementation == "sdpa"


def test_the_mismatch_is_of_sampled_tokens_alone(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    differences = [
        abs(now - then)
        for group in make_groups(PROBLEMS)
        for trajectory in group.trajectories
        for turn, logprobs in zip(trajectory.turns, sampled_logprobs(tiny_model, trajectory, 1.0), strict=True)
        for now, then in zip(logprobs.tolist(), turn.completion.logprobs, strict=True)
    ]
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, staleness=1)
    trainer.train()
    # 2 + 3 + 3 tokens of each problem; not the feedback between two turns.
    assert len(differences) == 16
    assert hooks.facts[0].mismatch == pytest.approx(sum(differences) / 16, abs=1e-5)


@pytest.mark.parametrize(("rejection", "passes"), [(MRS(), 2), (VoidTurns(), 1), (None, 1)])
def test_only_a_rejection_that_compares_costs_a_forward_pass(
    rejection: Rejection | None, passes: int, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    # MRS keeps everything, so that everything is trained.
    chosen = [replace(rejection, low=0.0, high=math.inf, veto=None) if isinstance(rejection, MRS) else rejection]
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, *(each for each in chosen if each is not None))
    seen: list[int] = []
    tiny_model.model.embed_tokens.register_forward_hook(lambda module, args, output: seen.append(len(output)))
    trainer.train()
    assert seen == [4] * passes
    assert (hooks.facts[0].mismatch is None) == (passes == 1)


def test_micro_batches_hold_every_row_that_trains_once(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, RejectFirstTurns([]), micro_tokens=18)
    seen: list[dict[str, torch.Tensor]] = []
    compute = trainer._compute_loss

    def record(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        seen.append(inputs)
        found: torch.Tensor = compute(model, inputs)
        return found

    trainer._compute_loss = record
    trainer.train()
    # 9, 6, 9 and 5 tokens: at most 18 with padding makes two pairs. Of the second, no token trains: it is left out.
    assert [len(inputs["advantages"]) for inputs in seen] == [2]
    assert [inputs["num_items_in_batch"].item() for inputs in seen] == [2]
    rows = []
    for b in range(2):
        trained = seen[0]["tool_mask"][b].bool()
        rows.append((seen[0]["completion_ids"][b][trained].tolist(), seen[0]["advantages"][b][trained].tolist()))
    (facts,) = hooks.facts
    assert (facts.tokens, facts.trained_tokens) == (2 * 8, 2 * 3)
    # Of each problem, the second turn of the first trajectory.
    assert rows == [([40, 41, 42], [2.0] * 3)] * 2


def test_the_loss_does_not_depend_on_the_micro_batches(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    """Loss, gradient norm and entropy of a step: with one pass for all rows, with two, and with one per row."""
    start = {name: tensor.clone() for name, tensor in tiny_model.state_dict().items()}
    found = []
    for micro_tokens, passes in ((64, 1), (18, 2), (1, 4)):
        tiny_model.load_state_dict(start)
        trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path / str(passes), micro_tokens=micro_tokens)
        trainer.train()
        assert hooks.checks == 1 + passes
        (facts,) = hooks.facts
        found.append([facts.loss, facts.grad_norm, facts.entropy])
        assert facts.grad_norm > 0
    assert found[1] == pytest.approx(found[0], abs=1e-5)
    assert found[2] == pytest.approx(found[0], abs=1e-5)


def test_trl_logs_the_names_that_a_step_is_reported_with(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    logged: list[dict[str, float]] = []
    record = trainer.record

    def note(logs: Any, *rest: Any) -> None:
        logged.append(dict(logs))
        record(logs, *rest)

    trainer.record = note  # type: ignore[method-assign]
    trainer._metrics["train"]["our_own"].append(0.25)
    trainer.train()
    (logs,) = logged
    assert {"loss", "grad_norm", "learning_rate", "entropy", "clip_ratio/region_mean"} <= logs.keys()
    assert logs["our_own"] == 0.25


def test_one_process_uses_one_device(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    assert trainer.args.n_gpu <= 1
    assert trainer.args.loss_type == "dapo"
    assert (trainer.args.epsilon, trainer.args.epsilon_high, trainer.args.beta) == (0.2, 0.28, 0.0)
    assert trainer.args.gradient_accumulation_steps * trainer.args.per_device_train_batch_size == 4


def test_a_fully_rejected_batch_changes_nothing(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    """Also after a step that trained: its momentum must not move the weights on."""
    rejection = RejectFromSecondStep([])
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, rejection, steps=2)
    weights: list[dict[str, torch.Tensor]] = []
    note = hooks.step_done

    def step_done(facts: StepFacts) -> None:
        weights.append({name: parameter.detach().clone() for name, parameter in tiny_model.named_parameters()})
        note(facts)

    hooks.step_done = step_done  # type: ignore[method-assign]
    start = tiny_model.model.embed_tokens.weight.detach().clone()
    trainer.train()
    trained, rejected = hooks.facts
    assert trained.trained_turns == 6 and trained.grad_norm > 0
    assert (rejected.loss, rejected.grad_norm, rejected.trained_turns, rejected.turns) == (0.0, 0.0, 0, 6)
    assert not torch.equal(weights[0]["model.embed_tokens.weight"], start)
    assert all(torch.equal(weights[1][name], before) for name, before in weights[0].items())


def test_steps_are_reported_before_their_checkpoint(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, micro_tokens=18, steps=3)
    before = tiny_model.model.layers[0].mlp.up_proj.weight.detach().clone()
    existed: list[list[str]] = []
    note = hooks.step_done

    def step_done(facts: StepFacts) -> None:
        existed.append(sorted(path.parent.name for path in tmp_path.glob("checkpoint-*/complete")))
        note(facts)

    hooks.step_done = step_done  # type: ignore[method-assign]
    trainer.train()
    assert hooks.asked == [0, 1, 2]
    assert [facts.step for facts in hooks.facts] == [1, 2, 3]
    assert existed == [[], ["checkpoint-1"], ["checkpoint-1", "checkpoint-2"]]
    # Per step: before the batch is made, and before each of two micro-batches.
    assert hooks.checks == 9
    assert all(facts.clip_fraction == 0.0 and facts.grad_norm > 0 and 5 < facts.entropy < 6 for facts in hooks.facts)
    assert not torch.equal(tiny_model.model.layers[0].mlp.up_proj.weight, before)
    assert all((path.parent / "saved").exists() for path in tmp_path.glob("checkpoint-*/complete"))


def test_weights_and_optimiser_stay_float32_on_the_cpu(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    trainer.train()
    assert {parameter.dtype for parameter in tiny_model.parameters()} == {torch.float32}
    moments = [value for state in trainer.optimizer.state.values() for name, value in state.items() if name != "step"]
    assert moments and {value.dtype for value in moments} == {torch.float32}


def test_an_error_in_the_hooks_ends_training(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path)

    def cancelled() -> None:
        raise KeyboardInterrupt

    hooks.check_cancelled = cancelled  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert hooks.asked == []


def test_logits_of_a_micro_batch_are_never_made_whole(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, RejectFirstTurns([]))
    projected: list[Any] = []
    tiny_model.lm_head.register_forward_hook(lambda *args: projected.append(args))
    trainer.train()
    # TRL's fused head multiplies by the weight in tiles, for the mismatch as for the loss.
    assert projected == [] and hooks.facts[0].mismatch is not None


@pytest.mark.parametrize(("asked", "used"), [(None, False), (True, True), (False, False)])
def test_activations_are_recomputed_where_the_run_says_so(
    asked: bool | None, used: bool, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path
) -> None:
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, gradient_checkpointing=asked)
    passes: list[str] = []
    attention = tiny_model.model.layers[0].self_attn
    attention.register_forward_hook(lambda *args: passes.append(attention.config._attn_implementation))
    trainer.train()
    # A second time in the backward pass, with the same attention.
    assert passes == [CAUSAL] * (2 if used else 1)
    assert hooks.facts[0].grad_norm > 0
