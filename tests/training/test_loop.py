"""Whole runs of a tiny random model with a scripted evaluator: rows, checkpoints, interruption, resumption."""

from __future__ import annotations

import errno
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import safetensors
import torch
from accelerate import Accelerator

from algorithms.mrs import MRS
from rlkernel.config import Run
from rlkernel.errors import UsageError, exit_status
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.pool import Pool
from rlkernel.policy.hf import HFPolicy
from rlkernel.policy.slots.engine import SlotEngine
from rlkernel.runs import checkpoints, log
from rlkernel.runs import directory as rundir
from rlkernel.settings import Stop
from rlkernel.training.ahead import Ahead
from rlkernel.training.batch import token_row
from rlkernel.training.loop import train
from rlkernel.training.sampling import Sampling
from rlkernel.training.trainer import KernelGRPOTrainer
from rlkernel.types import Evaluation, Group, Problem
from tests.echo import ScriptedEvaluator


def rows(directory: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / name).read_text().splitlines()]


def without_times(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what the clock and the machine decide."""
    varies = re.compile("seconds_.*|.*_per_second|memory_.*")
    return [{key: value for key, value in row.items() if not varies.fullmatch(key)} for row in found]


def do(run: Run, directory: Path, evaluator: ScriptedEvaluator | None = None) -> None:
    anyio.run(lambda: train(run, directory, evaluator=evaluator or ScriptedEvaluator()))


def test_a_run_leaves_what_it_promises(run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    directory = tmp_path / "run"
    evaluator = ScriptedEvaluator()
    do(run, directory, evaluator)
    found = rows(directory)
    assert [(row["split"], row["step"]) for row in found] == [
        ("validation", 0),
        ("train", 1),
        ("train", 2),
        ("validation", 2),
        ("train", 3),
        ("validation", 3),
    ]
    train_row = found[1]
    # 2 problems, 2 rollouts, 2 turns
    assert train_row["evaluations"] == 8
    assert train_row["completion_length"] <= 12
    assert train_row["kept_turns"] == 1.0
    assert train_row["clip_fraction"] == 0.0
    assert train_row["grad_norm"] > 0
    assert train_row["learning_rate"] == 1e-3
    # log(257 tokens) = 5.55 nats for a random model
    assert 5.0 < train_row["entropy"] < 5.7
    assert train_row["seconds_generation"] > 0
    assert train_row["seconds_wall"] >= train_row["seconds_rollout"] + train_row["seconds_training"] > 0
    assert train_row["seconds_evaluation"] >= train_row["seconds_evaluation_hidden"] >= 0
    assert train_row["sampled_tokens_per_second"] > 0 < train_row["trained_tokens_per_second"]
    assert train_row["memory_process_gib"] > 0.1
    assert (train_row["memory_gpu_gib"], train_row["seconds_gpu_wait_policy"], train_row["age"]) == (None, None, 0)
    # Training: 3 steps of 8; validation: 3 times 1 problem, 2 rollouts, 2 turns.
    assert evaluator.calls == 3 * 8 + 3 * 4
    transcripts = rows(directory, "transcripts.jsonl")
    assert {(row["split"], row["step"]) for row in transcripts} == {(row["split"], row["step"]) for row in found}
    assert transcripts[0]["prompt"] == "level1/held_out"
    assert len(transcripts[0]["turns"]) == 2
    manifest = rundir.read_manifest(directory)
    assert manifest is not None
    assert (manifest["arm"], manifest["seed"], manifest["timing"]) == ("trloo", 0, "modelled")
    assert manifest["run"]["advantage"] == {"class": "TRLOO", "singleton": "return"}
    assert "finished" in manifest
    assert manifest["evaluator"] == {"class": "ScriptedEvaluator"}
    err = capfd.readouterr().err
    started, *steps = err.splitlines()
    assert started == "trloo seed 0: starting"
    assert all(line.startswith("trloo seed 0  step ") for line in steps)
    assert err.count("fast@1.2") == 6

    before = (directory / "metrics.jsonl").read_bytes()
    do(run, directory, ScriptedEvaluator(fail_after=0))
    assert (directory / "metrics.jsonl").read_bytes() == before


def test_every_training_sample_has_a_seed_of_its_own_and_validations_repeat_theirs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []
    generate = HFPolicy.generate

    async def record(policy: HFPolicy, prompt_ids: Sequence[int], seed: int, *part: Any) -> Any:
        seeds.append(seed)
        return await generate(policy, prompt_ids, seed, *part)

    monkeypatch.setattr(HFPolicy, "generate", record)
    # 4 steps of all 3 problems: some problem comes twice at the same place of its batch.
    do(replace(run, steps=4, prompts_per_step=3, turns=1, max_new_tokens=2), tmp_path)
    # 4 x 3 x 2 for training; 2 at each of the validations 0, 2, 4, which differ by their weights alone.
    assert len(seeds) == 24 + 3 * 2
    assert len(set(seeds)) == 24 + 2


def test_rounded_rollout_weights_show_as_mismatch(run: Run, tmp_path: Path) -> None:
    found = {}
    for dtype in ("auto", "float8"):
        do(replace(run, rollout_dtype=dtype, corrections=(MRS(),), steps=1), tmp_path / dtype)
        found[dtype] = next(row for row in rows(tmp_path / dtype) if row["split"] == "train")
    assert found["auto"]["mismatch"] < 1e-5
    assert found["float8"]["mismatch"] > 1e-4


def test_validation_may_have_other_turns_than_training(run: Run, tmp_path: Path) -> None:
    do(replace(run, turns=1, validation_turns=3, steps=1), tmp_path)
    assert {(row["split"], row["turns"]) for row in rows(tmp_path)} == {("validation", 3), ("train", 1)}


@pytest.mark.parametrize("staleness", [0, 1, 2])
def test_validations_and_fresh_batches_come_from_the_weights_of_now(
    staleness: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines: list[SlotEngine] = []
    init, sample = SlotEngine.__init__, Sampling.groups
    sampled: list[str] = []

    def with_copy(engine: SlotEngine, *args: Any, **kwargs: Any) -> None:
        init(engine, *args, **{**kwargs, "copy": True})  # as on a GPU
        engines.append(engine)

    async def sample_and_compare(self: Sampling, *args: Any) -> tuple[Group, ...]:
        groups = await sample(self, *args)
        sampled.append(args[4])
        if args[4] != "training, next rollouts":
            assert engines[0]._replica is not None
            for found in (token_row(trajectory) for group in groups for trajectory in group.trajectories):
                ids = torch.tensor([found.prompt_ids + found.completion_ids])
                with torch.no_grad():
                    logprobs = engines[0]._replica.source(input_ids=ids).logits[0].log_softmax(-1)[:-1]
                now = logprobs.gather(1, ids[0, 1:, None])[-len(found.completion_ids) :, 0]
                mask = torch.tensor(found.policy_mask).bool()
                torch.testing.assert_close(torch.tensor(found.rollout_logprobs)[mask], now[mask], atol=1e-4, rtol=0)
        return groups

    monkeypatch.setattr(SlotEngine, "__init__", with_copy)
    monkeypatch.setattr(Sampling, "groups", sample_and_compare)
    # One update moves these log-probabilities by more than 1e-2.
    do(replace(run, staleness=staleness, learning_rate=1e-2), tmp_path)
    assert len(engines) == 1
    assert sampled.count("validation") == 3  # after 0, 2 and 3 steps: before the second batch there is none
    assert (sampled.count("rollouts"), sampled.count("training, next rollouts")) == ((3, 0), (1, 2), (1, 2))[staleness]


def test_groups_that_shrink_with_the_turn_are_trained(run: Run, tmp_path: Path) -> None:
    """The scripted verdicts are correct in half of the cases, which end a trajectory here; it has 3 turns at most."""
    do(replace(run, stop=Stop(speedup=1e-9), turns=3, rollouts=4), tmp_path)
    found = rows(tmp_path)
    assert all(1.0 <= row["turns"] < 3.0 for row in found)
    assert any(row["turns"] > 1.0 and row["grad_norm"] > 0 for row in found if row["split"] == "train")
    for row in rows(tmp_path, "transcripts.jsonl"):
        assert [turn["evaluation"]["correct"] for turn in row["turns"][:-1]] == [False] * (len(row["turns"]) - 1)


def test_every_batch_has_its_age_and_no_more_than_the_staleness_wait(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With staleness 2: batches 0, 1 and 2 come from the first weights, batch b after them from those of step b - 2."""
    sampled: list[tuple[int, int | None, int]] = []
    sample = Sampling._whole

    async def note(self: Sampling, step: int, what: str) -> Any:
        sampled.append((step, self.policy._step, len(self.ahead.ready)))
        return await sample(self, step, what)

    monkeypatch.setattr(Sampling, "_whole", note)
    do(replace(run, staleness=2, steps=6, turns=1, max_new_tokens=2), tmp_path)
    # The third number: batches that waited when this one began.
    assert sampled == [(0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 1, 1), (4, 2, 1), (5, 3, 1)]
    assert [row["age"] for row in rows(tmp_path) if row["split"] == "train"] == [0, 1, 2, 2, 2, 2]
    # What a checkpoint holds: the batches of the two next steps, as far as there are any.
    held = {step: Ahead.read(tmp_path / "checkpoints" / f"checkpoint-{step}") for step in (5, 6)}
    found = {step: [weights_of(groups) for groups in ahead.ready] for step, ahead in held.items()}
    assert found == {5: [{3}], 6: []} and not any(ahead.begun for ahead in held.values())


def weights_of(groups: Sequence[Group]) -> set[int]:
    """The steps behind the weights of a batch's tokens."""
    return {at for g in groups for t in g.trajectories for turn in t.turns for at in turn.completion.sampled_at}


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(run: Run, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    do(run, whole)
    # Validation 4, step 1: 8; then the evaluator fails within step 2, and again before a checkpoint of step 2 exists.
    for calls in (17, 3):
        with pytest.raises(ExceptionGroup) as caught:
            do(run, broken, ScriptedEvaluator(fail_after=calls))
        assert caught.group_contains(RuntimeError, match="evaluator is gone")
        assert [(row["split"], row["step"]) for row in rows(broken)] == [("validation", 0), ("train", 1)]
    # A kill while a checkpoint and a row are being written.
    (broken / "checkpoints" / "checkpoint-2").mkdir()
    with (broken / "metrics.jsonl").open("a") as file:
        file.write('{"split": "train", "step": 2, "reward": 9}\n{"split": "tr')
    do(run, broken)
    assert without_times(rows(broken)) == without_times(rows(whole))
    assert len(rows(broken, "transcripts.jsonl")) == len(rows(whole, "transcripts.jsonl"))
    weights = [(d / "checkpoints" / "checkpoint-3" / "model.safetensors").read_bytes() for d in (whole, broken)]
    assert weights[0] == weights[1]


def test_a_run_whose_newest_checkpoint_is_damaged_goes_on_from_the_one_before_it(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for directory in (whole, broken):
        do(run, directory)
    # As if the process had been killed after its last checkpoint, and the disk had lost half of the optimiser's state.
    rundir.write_manifest(broken, {k: v for k, v in (rundir.read_manifest(broken) or {}).items() if k != "finished"})
    newest = broken / "checkpoints" / "checkpoint-3"
    state = (newest / "optimizer.pt").read_bytes()
    (newest / "optimizer.pt").write_bytes(state[: len(state) // 2])
    capfd.readouterr()
    do(run, broken)
    told = capfd.readouterr().err.splitlines()
    wrong = f"optimizer.pt has {len(state) // 2} bytes of {len(state)}"
    assert told[:2] == [
        f"{newest} is damaged ({wrong}): going on from the one before it, or from the start if there is none",
        "trloo seed 0: resuming after step 2 of 3",
    ]
    assert without_times(rows(broken)) == without_times(rows(whole))
    for name in ("model.safetensors", "optimizer.pt"):
        assert (newest / name).read_bytes() == (whole / "checkpoints" / "checkpoint-3" / name).read_bytes()


@pytest.mark.parametrize("what", ["row", "weights", "optimizer"])
def test_a_disk_that_fills_up_is_one_line_and_the_run_goes_on_as_if_it_had_not(
    what: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In step 2. The libraries say it in words of their own; that the disk takes nothing more is simulated at the probe."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    do(run, whole)
    calls: Counter[str] = Counter()

    def fills_up(error: Exception, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls[what] += 1
            if calls[what] == 2:
                if what == "row":
                    with args[0].open("a") as file:
                        file.write('{"split": "tr')  # as much as there was room for
                raise error
            return original(*args, **kwargs)

        return call

    places: dict[str, tuple[Any, str, Exception]] = {
        "row": (log, "_append", OSError(errno.ENOSPC, "No space left on device")),
        "weights": (KernelGRPOTrainer, "_save", safetensors.SafetensorError("I/O error: No space left on device")),
        "optimizer": (torch, "save", RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0")),
    }
    owner, name, error = places[what]
    with monkeypatch.context() as full:
        full.setattr(owner, name, fills_up(error, getattr(owner, name)))
        full.setattr(checkpoints, "is_full", lambda directory: True)
        capfd.readouterr()
        assert exit_status(lambda: do(run, broken)) == 2
    err = capfd.readouterr().err
    assert err.splitlines()[-1].startswith("error: the disk is full") and "Traceback" not in err
    do(run, broken)
    assert without_times(rows(broken)) == without_times(rows(whole))
    saved = [(d / "checkpoints" / "checkpoint-3" / "model.safetensors").read_bytes() for d in (whole, broken)]
    assert saved[0] == saved[1]


@pytest.mark.parametrize("staleness", [0, 2])
def test_a_limit_ends_training_at_its_next_checkpoint_and_the_run_goes_on_exactly(
    staleness: int, run: Run, tmp_path: Path
) -> None:
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    run = replace(run, staleness=staleness)
    do(run, whole)

    def once() -> bool:
        """Time is up from the beginning: exactly one step is taken."""
        return anyio.run(lambda: train(run, pieces, evaluator=ScriptedEvaluator(), until=time.monotonic()))

    assert [once() for _ in range(3)] == [False, False, True]
    assert without_times(rows(pieces)) == without_times(rows(whole))
    for name in ("transcripts.jsonl", "outcomes.jsonl"):
        assert (pieces / name).read_text() == (whole / name).read_text()
    for name in ("model.safetensors", "optimizer.pt"):
        found = [(directory / "checkpoints" / "checkpoint-3" / name).read_bytes() for directory in (whole, pieces)]
        assert found[0] == found[1], name
    assert once()  # finished: there is nothing to do


def test_a_model_that_cannot_be_loaded_is_one_line(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"model '.*/nothing': no such directory"):
        do(replace(run, model=str(tmp_path / "nothing")), tmp_path / "run")


def test_a_run_without_validation_problems_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has none with split 'validation'"):
        do(replace(run, problems=run.problems[:3]), tmp_path / "run")
    assert not (tmp_path / "run").exists(), "what cannot begin leaves no directory behind"


class SharedCard(Pool):
    """A pool whose only card is the policy's. While a candidate measures, nothing else may run there."""

    def __init__(self) -> None:
        self.config, self.jobs, self.device = EvaluatorConfig(), 4, "a card"
        self.users: list[str] = []
        self.seen: Counter[str] = Counter()
        self._card = anyio.Lock()
        self._verdicts = ScriptedEvaluator()

    @property
    def shares(self) -> bool:
        return True

    @property
    def notices(self) -> tuple[str, ...]:
        return ()

    @property
    def waited_seconds(self) -> tuple[float, float]:
        return (1.0, 2.0)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        async with self._card:
            yield

    def watched(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, which must have the card to itself."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.users.append(what)
            self.seen[what] += 1
            try:
                assert self._card.locked(), f"{what} without a lease"
                assert self.users == [what]
                return call(*args, **kwargs)
            finally:
                self.users.remove(what)

        return wrapped

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        async with self._card:
            assert self.users == []
            self.users.append("candidate")
            await anyio.sleep(0.005)  # long enough for somebody without a lease to be seen
            assert self.users == ["candidate"]
            self.users.remove("candidate")
        return await self._verdicts.evaluate(problem, code)


def test_on_a_shared_card_everybody_takes_a_lease(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> SharedCard:
        card = SharedCard()
        for owner, name, what in (
            (SlotEngine, "advance", "sampling"),
            (KernelGRPOTrainer, "_scores", "forward"),
            (Accelerator, "backward", "backward"),
            (torch.optim.AdamW, "step", "update"),
        ):
            monkeypatch.setattr(owner, name, card.watched(what, getattr(owner, name)))
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: card.seen.update(["synchronised"]))
        await train(replace(run, staleness=1), tmp_path, evaluator=card, micro_tokens=80)
        return card

    seen = anyio.run(body).seen
    # 3 steps. A lease for every micro-batch of the loss and of the mismatch, for TRL's padding, for clipping and for the update.
    assert (seen["backward"] > 3, seen["update"]) == (True, 3)
    assert seen["forward"] > seen["backward"]
    assert seen["synchronised"] == seen["forward"] + 3 + 3 + 3
    assert seen["sampling"] > 0
    manifest = rundir.read_manifest(tmp_path)
    assert manifest is not None
    assert (manifest["evaluator"]["takes_turns"], manifest["evaluator"]["profile"]) == (True, "h200")
    assert manifest["evaluator"]["limits"]["gpu_memory_bytes"] == 0
    assert [row["seconds_gpu_wait_policy"] for row in rows(tmp_path)] == [0.0] * 6


def test_a_run_that_is_cancelled_under_a_lease_ends_without_an_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = SharedCard()
    backward = Accelerator.backward

    async def body() -> bool:
        with anyio.CancelScope() as scope:

            def cancelling(*args: Any, **kwargs: Any) -> None:
                backward(*args, **kwargs)
                anyio.from_thread.run_sync(scope.cancel)

            monkeypatch.setattr(Accelerator, "backward", cancelling)
            monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
            await train(replace(run, staleness=1), tmp_path, evaluator=card)
        return scope.cancelled_caught

    assert anyio.run(body)
    assert not card._card.locked()
