"""What a tuning leaves of its steps: rows of metrics, examinations now and then, and a line for whoever watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from transformers import TrainerCallback

from rlkernel.metrics import rollout_metrics, timing
from rlkernel.runs.log import RunLog, choose, summary
from rlkernel.training import ranks
from rlkernel.types import Group

TRANSCRIPTS = 8
"""Trajectories of an examination that are kept as text."""
NUMBERS = ("loss", "grad_norm", "learning_rate", "entropy", "mean_token_accuracy", "epoch")
"""What is kept of TRL's numbers of a step."""
Examine = Callable[[Any], tuple[Group, ...]]
"""Has a model answer the validation problems."""


class Pace:
    """The tokens per second between the steps that TRL logs."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._since: float | None = None

    def at(self, logs: Mapping[str, float]) -> tuple[float, float | None]:
        """(tokens since the step before, tokens per second, None where nothing stands to be compared). logs: of TRL, which counts
        the tokens since this process began."""
        now, tokens = time.monotonic(), logs["num_tokens"] - self._tokens
        speed = None if self._since is None else tokens / (now - self._since)
        self._since, self._tokens = now, logs["num_tokens"]
        return tokens, speed

    def pause(self) -> None:
        """Something else takes time now."""
        self._since = None


def tell(state: Any, logs: Mapping[str, float], speed: float | None) -> None:
    """Print how far a training is."""
    told = f"step {state.global_step}/{state.max_steps}  loss {logs['loss']:.4f}  accuracy {logs['mean_token_accuracy']:.0%}"
    print(told + (f"  {speed:,.0f} tokens/s" if speed is not None else ""), file=sys.stderr, flush=True)


class Teller(TrainerCallback):  # type: ignore[misc]
    """Prints a line for each step that TRL logs."""

    def __init__(self) -> None:
        self._pace = Pace()

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, float], **kwargs: Any) -> None:
        """Print the line of a step."""
        if "loss" in logs:  # the summary at the end has none
            tell(state, logs, self._pace.at(logs)[1])


class Recorder(TrainerCallback):  # type: ignore[misc]
    """Writes a row per step, and examines the model before the first step, every `every` steps, and after the last. It does so in
    the first of several processes; the others wait for an examination."""

    def __init__(self, log: RunLog | None, examine: Examine, prompts: Mapping[str, str], every: int) -> None:
        """log: None in all processes but the first. prompts: the text of each validation problem's prompt, by name."""
        self._log, self._examine, self._prompts, self._every = log, examine, prompts, every
        self._pace = Pace()
        self.last: tuple[Group, ...] = ()
        """The trajectories of the last examination."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Examine a model that nothing was taught yet."""
        if state.global_step == 0:
            self._examined(kwargs["model"], state)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Examine a model whose turn it is."""
        if state.global_step % self._every == 0 or state.global_step == state.max_steps:
            self._examined(kwargs["model"], state)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, float], **kwargs: Any) -> None:
        """Write the row of a step."""
        if self._log is None or "loss" not in logs:  # the summary at the end has none
            return
        tokens, speed = self._pace.at(logs)
        row = {**{name: logs[name] for name in NUMBERS if name in logs}, "tokens": tokens}
        if speed is not None:
            row["tokens_per_second"] = speed
        self._log.write("train", state.global_step, row)
        tell(state, logs, speed)

    def _examined(self, model: Any, state: Any) -> None:
        if self._log is not None:
            groups = self._examine(model)
            self.last, step, values = groups, state.global_step, rollout_metrics(groups)
            self._log.write_transcripts("validation", step, self._prompts, choose(groups, TRANSCRIPTS))
            self._log.write("validation", step, {**values, "timing": timing(groups)})
            print(f"step {step}/{state.max_steps}  validation  {summary(values)}", file=sys.stderr, flush=True)
            self._pace.pause()
        ranks.meet()
