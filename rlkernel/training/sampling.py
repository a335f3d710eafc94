"""What is sampled when, and from which weights: the batch of a step, and beside its training those of later steps.

The batch of step b is begun beside the training of step b - n, from the weights before that step, where n is `Run.staleness`. It
is complete before step b - n + 1, or, with in-flight refresh (`Run.refresh_tokens`), goes on beside that step from newer weights:

    n = 2, refresh_tokens = 100                 beside step 4     beside step 5     trained in step 6
    a trajectory of 250 tokens of batch 6       100 tokens        150 tokens
    their weights are those before              step 4            step 5
    their age                                   2                 1

Beside every step but the last of its n, a trajectory samples at most `refresh_tokens` tokens; then it waits, perhaps in the
middle of a completion, until everybody is there and the weights are new. Beside the last one it samples the rest. So a step waits
for the longest part of a trajectory, and not for the longest trajectory. Which weights sample which token is a matter of counts,
not of anybody's speed, and a batch is made of the trajectories that were begun for it: none is trained sooner for being short.
What an earlier step's weights have computed (keys and values) is computed again: a token's log-probability is what its own
weights give for all that comes before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread

from rlkernel.config import Run
from rlkernel.policy.hf import HFPolicy
from rlkernel.rollout import Course, concurrent, derive_seed, go_on, rollout_groups
from rlkernel.runs.log import Display
from rlkernel.training.ahead import Ahead, BegunBatch
from rlkernel.training.draws import Draws
from rlkernel.training.meter import MeteredEvaluator
from rlkernel.types import Group, Problem

ROLLOUTS, BESIDE = "rollouts", "training, next rollouts"
"""What the display calls sampling while training waits for it, and sampling beside training."""


@dataclass
class Sampling:
    """Samples a run's groups. `ahead` is what it has sampled and nobody has trained: a checkpoint holds it."""

    run: Run
    policy: HFPolicy
    evaluator: MeteredEvaluator
    display: Display
    draws: Draws
    """Chooses the training problems of each step."""
    ahead: Ahead

    async def refresh(self, step: int) -> None:
        """Let the policy sample from the weights of now, which have `step` steps behind them."""
        await anyio.to_thread.run_sync(self.policy.refresh, step)

    async def batch(self, step: int) -> tuple[Group, ...]:
        """The batch of step `step`, from 0: the one that is ready, or one from the weights of now."""
        if not self.ahead.ready:
            await self.refresh(step)
            self.ahead.ready.append(await self._whole(step, ROLLOUTS))
        return self.ahead.ready.pop(0)

    def later(self, step: int) -> range:
        """The steps whose batches are to be sampled beside the training of `step`, or at least a part of them."""
        return range(step + 1 + len(self.ahead.ready), min(step + self.run.staleness + 1, self.run.steps))

    async def beside(self, step: int) -> None:
        """Sample beside the training of `step` what `later` says, from the weights that were refreshed before it."""
        if not self.run.refresh_tokens:
            for number in self.later(step):
                self.ahead.ready.append(await self._whole(number, BESIDE))
            return
        ahead = self.ahead
        for number in self.later(step)[len(ahead.begun) :]:
            ahead.begun.append(BegunBatch.of(number, self.draws.begin(number), self.run.rollouts))
        self.display.expect(BESIDE, self.run.turns * sum(batch.under_way for batch in ahead.begun))
        async with anyio.create_task_group() as tasks:
            for place in range(len(ahead.begun)):
                tasks.start_soon(self._further, place, step)
        while ahead.begun and not ahead.begun[0].under_way:
            batch = ahead.begun.pop(0)
            self.draws.complete(batch.step, batch.groups)
            ahead.ready.append(batch.groups)

    async def _further(self, place: int, step: int) -> None:
        """Go on with a batch that was begun: to its end, if the next step trains it."""
        run, batch = self.run, self.ahead.begun[place]
        tokens = None if batch.step == step + 1 else run.refresh_tokens

        async def one(i: int, k: int, seed: int) -> Course:
            return await go_on(
                batch.problems[i],
                batch.courses[i][k],
                self.policy,
                self.evaluator,
                run.environment,
                run.reward,
                run.turns,
                seed=seed,
                stop=run.stop,
                on_turn=self.display.turn_done,
                tokens=tokens,
            )

        courses = await concurrent(batch.problems, run.rollouts, derive_seed(run.seed, "train", batch.step), one)
        self.ahead.begun[place] = replace(batch, courses=courses)

    async def _whole(self, step: int, what: str) -> tuple[Group, ...]:
        """The batch of a step, all from the weights of the last refresh."""

        async def sample(problems: Sequence[Problem], number: int) -> tuple[Group, ...]:
            seed = derive_seed(self.run.seed, "train", step, *([number] if number else []))
            return await self.groups(problems, self.run.rollouts, self.run.turns, seed, what)

        return await self.draws.batch(step, sample)

    async def groups(self, problems: Sequence[Problem], rollouts: int, turns: int, seed: int, what: str) -> tuple[Group, ...]:
        """Groups of `rollouts` trajectories, all from the weights of the last refresh."""
        run, on_turn = self.run, self.display.turn_done
        self.display.expect(what, len(problems) * rollouts * turns)
        return await rollout_groups(
            problems,
            rollouts,
            self.policy,
            self.evaluator,
            run.environment,
            run.reward,
            turns,
            seed=seed,
            stop=run.stop,
            on_turn=on_turn,
        )
