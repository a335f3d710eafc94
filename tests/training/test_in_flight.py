"""In-flight refresh: trajectories that span updates, with the log-probabilities of every token's own weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
import torch

from rlkernel.config import Run
from rlkernel.interfaces import Removes
from rlkernel.policy.hf import HFPolicy
from rlkernel.policy.load import load_model
from rlkernel.training.ahead import Ahead
from rlkernel.training.batch import token_row
from rlkernel.training.loop import train
from rlkernel.training.sampling import Sampling
from rlkernel.types import Group, Trajectory
from tests.echo import ScriptedEvaluator

SEEN: list[torch.Tensor] = []
"""The log-ratios that `Recorded` was shown, in the order of the groups."""


@dataclass(frozen=True)
class Recorded:
    """A correction that corrects nothing and remembers what it is shown."""

    removes: ClassVar[Removes] = "loss"
    needs_ratios: ClassVar[bool] = True

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        SEEN.append(log_ratios_KTL)
        return kept_KTL


@dataclass
class Watched:
    """What a run has done: the weights by the steps behind them, and the batches in the order of their training."""

    weights: dict[int, dict[str, torch.Tensor]]
    batches: list[tuple[Group, ...]]


def watch(run: Run, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Train the run, and keep what `Watched` says."""
    found = Watched({}, [])
    refresh, batch = HFPolicy.refresh, Sampling.batch

    def note_weights(self: HFPolicy, step: int | None = None) -> None:
        refresh(self, step)
        assert self._engine is not None and step is not None
        model = self._engine.model  # type: ignore[attr-defined]
        found.weights[step] = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    async def note_batch(self: Sampling, step: int) -> tuple[Group, ...]:
        assert step == len(found.batches)
        found.batches.append(await batch(self, step))
        trained = self.policy._engine._replica.source  # type: ignore[union-attr]
        found.weights[step] = {name: tensor.clone() for name, tensor in trained.state_dict().items()}
        return found.batches[-1]

    with monkeypatch.context() as patched:
        patched.setattr(HFPolicy, "refresh", note_weights)
        patched.setattr(Sampling, "batch", note_batch)
        anyio.run(lambda: train(run, directory, evaluator=ScriptedEvaluator()))
    return found


def rows(directory: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [row for row in found if row["split"] == "train"]


@torch.no_grad()
def logprobs(model: Any, weights: dict[str, torch.Tensor], trajectory: Trajectory) -> torch.Tensor:
    """The log-probability of every sampled token under these weights, by one plain forward pass."""
    model.load_state_dict(weights)
    row = token_row(trajectory)
    ids = torch.tensor([row.prompt_ids + row.completion_ids])
    every: torch.Tensor = model(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    return every[-len(row.completion_ids) :][torch.tensor(row.policy_mask).bool()]


def told(trajectory: Trajectory) -> tuple[list[float], list[int]]:
    """The recorded log-probability of every sampled token, and the steps behind its weights."""
    completions = [turn.completion for turn in trajectory.turns]
    return [p for c in completions for p in c.logprobs], [at for c in completions for at in c.sampled_at]


def trajectories(batch: Sequence[Group]) -> list[Trajectory]:
    return [trajectory for group in batch for trajectory in group.trajectories]


@pytest.mark.parametrize("engine", ["slots", "generate"])
def test_every_token_has_the_log_probability_of_its_own_weights(
    engine: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Staleness 3, 7 of at most 24 tokens per step: ages of 3, 2 and 1; a correction sees the ratios to these weights."""
    SEEN.clear()
    run = replace(run, engine=engine, staleness=3, refresh_tokens=7, steps=6, learning_rate=1e-2, corrections=(Recorded(),))
    found = watch(run, tmp_path / "run", monkeypatch)
    model = load_model(run.model)[0].eval()
    assert len(found.batches) == 6 and len(SEEN) == 6 * 2
    seen, cut, furthest = iter(SEEN), 0, 0.0
    for step, batch in enumerate(found.batches):
        begun = max(step - 3, 0)
        for group in batch:
            log_ratios_KTL = next(seen)
            for k, trajectory in enumerate(group.trajectories):
                recorded, sampled_at = told(trajectory)
                # Seven tokens from the weights of each step, and from those of the step before its training all that is left.
                ages = [min(begun + i // 7, max(step - 1, 0)) for i in range(len(recorded))]
                assert sampled_at == ages
                by_step = {at: logprobs(model, found.weights[at], trajectory) for at in {*ages, step}}
                own = torch.stack([by_step[at][i] for i, at in enumerate(ages)])
                torch.testing.assert_close(torch.tensor(recorded), own, atol=2e-5, rtol=0)
                furthest = max(furthest, float((by_step[ages[-1]] - own).abs().max()))
                cut += sum(len(set(turn.completion.sampled_at)) > 1 for turn in trajectory.turns)
                shown = [log_ratios_KTL[k, t, : len(turn.completion.token_ids)] for t, turn in enumerate(trajectory.turns)]
                torch.testing.assert_close(torch.cat(shown).float(), by_step[step] - torch.tensor(recorded), atol=1e-4, rtol=0)
    # Completions were cut in their middle, and one set of weights for a whole trajectory would be far off.
    assert cut >= 12 and furthest > 0.1
    ages_by_turn = [(row["age"], row["age_turn_1"], row["age_turn_2"]) for row in rows(tmp_path / "run")]
    assert ages_by_turn[:2] == [(0.0, 0.0, 0.0), (1.0, 1.0, 1.0)]
    for step in (3, 4, 5):
        tokens = [
            (t, step - at)
            for tr in trajectories(found.batches[step])
            for t, turn in enumerate(tr.turns)
            for at in turn.completion.sampled_at
        ]
        means = [[age for t, age in tokens if t in turns] for turns in ((0, 1), (0,), (1,))]
        assert ages_by_turn[step] == pytest.approx([sum(own) / len(own) for own in means])
        assert 3 > ages_by_turn[step][1] > ages_by_turn[step][2] >= 1


@pytest.mark.parametrize("tokens", [1, 5, 12])
def test_where_weights_stay_the_parts_are_the_whole(
    tokens: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a learning rate of 0, in-flight refresh changes the ages alone; 1 and 5 cut completions, 12 is a turn."""
    run = replace(run, staleness=3, steps=5, learning_rate=0.0)
    whole, parts = (
        watch(one, tmp_path / name, monkeypatch) for name, one in (("whole", run), ("parts", replace(run, refresh_tokens=tokens)))
    )
    for step, (one, other) in enumerate(zip(whole.batches, parts.batches, strict=True)):
        for mine, theirs in zip(trajectories(one), trajectories(other), strict=True):
            assert [turn.completion.token_ids for turn in mine.turns] == [turn.completion.token_ids for turn in theirs.turns]
            assert [turn.evaluation for turn in mine.turns] == [turn.evaluation for turn in theirs.turns]
            assert told(mine)[0] == pytest.approx(told(theirs)[0], abs=2e-5)
            assert set(told(mine)[1]) == {max(step - 3, 0)}
    assert {at for trajectory in trajectories(parts.batches[4]) for at in told(trajectory)[1]} >= {1, 2}


def test_a_step_waits_for_a_part_of_a_trajectory_and_batches_for_what_they_still_need(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a checkpoint holds: of staleness 3, the next batch complete, and of the two after it what their steps have sampled."""
    held: dict[str, tuple[Ahead, list[dict[str, Any]]]] = {}
    write = Ahead.write

    def note(self: Ahead, checkpoint: Path) -> None:
        write(self, checkpoint)
        held[checkpoint.name] = Ahead.read(checkpoint), json.loads((checkpoint / "drawn_problems.json").read_text())

    monkeypatch.setattr(Ahead, "write", note)
    run = replace(run, staleness=3, refresh_tokens=4, steps=6, turns=2, max_new_tokens=12)
    found = watch(run, tmp_path / "run", monkeypatch)
    ahead, drawn = held["checkpoint-2"]
    assert [batch.step for batch in ahead.begun] == [3, 4]
    assert [tuple(problem.name for problem in batch.problems) for batch in ahead.begun] == [
        tuple(group.problem.name for group in found.batches[step]) for step in (3, 4)
    ]
    assert ahead.ready == [found.batches[2]]
    for batch, parts in zip(ahead.begun, (2, 1), strict=True):
        for courses, group in zip(batch.courses, found.batches[batch.step], strict=True):
            for course, trajectory in zip(courses, group.trajectories, strict=True):
                begun = [] if course.begun is None else [course.begun]
                held = [token for completion in (*(t.completion for t in course.turns), *begun) for token in completion.token_ids]
                later = [token for turn in trajectory.turns for token in turn.completion.token_ids]
                assert held == later[: 4 * parts] and (len(held) == 4 * parts or course.over)
    # Two problems each of batches 0 to 4; what became of the two last is not known yet.
    assert [draw["step"] for draw in drawn] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert [draw["solved"] is None for draw in drawn] == [False] * 6 + [True] * 4
