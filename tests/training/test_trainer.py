"""What we rely on in TRL 1.16.0, seam by seam. A new version of TRL is safe to take when these pass, and those of
test_trainer_loss.py.

`_generate_and_score_completions(inputs) -> dict`: test_generate_and_score_returns_our_tensors
`rollout_func(prompts, trainer)`: test_rollout_func_gets_every_prompt_once_per_rollout
`_get_per_token_logps_and_entropies`, of packed rows: test_log_probabilities_are_those_of_a_plain_forward_pass,
    test_the_mismatch_is_measured_in_the_layout_that_is_trained
advantages of shape (B, C) in the `dapo` loss: test_loss_and_gradient_..., test_an_advantage_counts_where_it_is_filled
`tool_mask` and `num_items_in_batch`: test_rejected_turns_..., test_rejected_tokens_..., test_a_fully_rejected_batch_...
`old_per_token_logps`, asymmetric clipping: test_clipping_is_asymmetric_and_per_token
`training_step`, `_prepare_inputs` and what TRL would cut: test_micro_batches_hold_every_row_that_trains_once,
    test_the_loss_does_not_depend_on_the_micro_batches
`compute_loss` of packed rows: test_packing.py
`_metrics` and the logged names: test_trl_logs_the_names_that_a_step_is_reported_with
a step without a gradient, `on_pre_optimizer_step`: test_a_fully_rejected_batch_changes_nothing
what of the run reaches the batch: test_draws_of_rejections_..., test_every_rejection_..., test_gamma_of_the_run_discounts
callbacks, log before save, and checkpoints: test_steps_are_reported_before_their_checkpoint,
    test_training_can_end_at_a_checkpoint
the configuration: test_trl_arguments.py, test_weights_and_optimiser_stay_float32_on_the_cpu
the fused projection, gradient checkpointing: test_logits_of_a_micro_batch_..., test_activations_are_recomputed_...
errors inside a step: test_an_error_in_the_hooks_ends_training
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import trl

from algorithms.hrd import HRD
from rlkernel.training.batch import pad_rows
from rlkernel.training.hooks import StepFacts
from rlkernel.training.packing import PACKED
from rlkernel.types import Completion, Evaluation, Group, Status, Trajectory, Turn
from tests.training.trainer_doubles import (
    PROBLEMS,
    RecordSeed,
    RejectFirstTurns,
    RejectFromSecondStep,
    batch_of,
    make_groups,
    make_trainer,
)


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
    # 9, 6, 9 and 5 tokens: at most 18 makes two pairs. Of the second, no token trains: it is left out.
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


def test_training_can_end_at_a_checkpoint(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, steps=3)
    hooks.enough = lambda: len(hooks.facts) == 2  # type: ignore[method-assign]
    trainer.train()
    assert hooks.asked == [0, 1]
    assert trainer.state.global_step == 2
    assert sorted(path.parent.name for path in tmp_path.glob("checkpoint-*/complete")) == ["checkpoint-1", "checkpoint-2"]


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
    assert passes == [PACKED] * (2 if used else 1)
    assert hooks.facts[0].grad_norm > 0
