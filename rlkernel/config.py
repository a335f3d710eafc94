"""`Run`: one frozen value that says everything about a training run. Arms differ by `dataclasses.replace`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from rlkernel.checks import check_name, check_number, check_plain, check_weights
from rlkernel.errors import UsageError
from rlkernel.interfaces import Advantage, Correction, Credit, Environment, Reward, Sampler
from rlkernel.method_code import code_of
from rlkernel.methods import check_instance, check_method, check_shown, told_kind
from rlkernel.settings import Loss, Optimiser, Stop
from rlkernel.types import TIMING_WIDTH, Precision, Problem
from rlkernel.uniform import Uniform

METHODS: Mapping[str, type] = {
    "reward": Reward,
    "advantage": Advantage,
    "credit": Credit,
    "corrections": Correction,
    "sampler": Sampler,
}
"""The fields of a `Run` that say what its algorithm is."""
SETTINGS: Mapping[str, type] = {"loss": Loss, "optimiser": Optimiser, "stop": Stop}
"""The fields of a `Run` that are groups of settings."""
COUNTS = (
    *("turns", "prompts_per_step", "max_new_tokens", "steps", "updates", "epochs"),
    *("validation_every", "validation_rollouts"),
)
"""The fields that are at least 1."""
ENGINES = ("auto", "slots", "generate")
"""The engines that sample. auto: slots, or generate for a model whose attention is not the plain one."""
WEIGHTS = ("float32", "bfloat16")
"""Number formats of the weights that train where there are no adapters."""
ROLLOUT_DTYPES = ("auto", "bfloat16", "float8")
"""Number formats of the weights that sample. auto: bfloat16 on a GPU, the trainer's own elsewhere."""


@dataclass(frozen=True)
class Run:
    """One arm of an experiment. The algorithm's fields are typed by Protocol, so that no shell can change them."""

    name: str
    problems: tuple[Problem, ...]
    environment: Environment
    reward: Reward
    advantage: Advantage
    credit: Credit
    corrections: tuple[Correction, ...] = ()
    """What weighs or drops sampled tokens, in the order of asking: each sees what those before it kept, and their weights
    multiply. The public code of arXiv 2602.05885 has void turns first, then MRS, then PRS."""
    gamma: float = 1.0
    """Discount of the return to go."""
    sampler: Sampler = field(default_factory=Uniform)
    """What chooses the problems of a step."""

    model: str = "small"
    """`small` (the shipped model), or any Hugging Face causal LM name or path."""
    turns: int = 3
    prompts_per_step: int = 8
    rollouts: int = 4
    """K: trajectories per prompt and step."""
    max_new_tokens: int = 512
    """The most tokens that the policy may sample in one turn."""
    temperature: float = 1.0
    steps: int = 20
    learning_rate: float = 1e-6
    max_grad_norm: float = 1.0
    """The norm that a longer gradient is cut to; 0: none is cut."""
    seed: int = 0

    updates: int = 1
    """Optimiser updates for which a step's batch is cut into equal numbers of whole groups (`rlkernel.training.minibatches`)."""
    epochs: int = 1
    """How often a step goes through its batch, each time cut anew."""
    loss: Loss = field(default_factory=Loss)
    """What a token adds to the loss, and what regularises it."""
    optimiser: Optimiser = field(default_factory=Optimiser)
    """The learning rate over the steps, and weight decay."""
    stop: Stop = field(default_factory=Stop)
    """When a trajectory ends before its last turn."""
    turn_gradients: bool = False
    """Measure the gradient norm of each turn's tokens alone, as `grad_norm_turn_<t>`. It costs as much as `turns` more epochs and
    changes nothing that is computed."""

    staleness: int = 0
    """Steps between the weights that sample a batch and those that it updates: its age. 0: rollouts and training take turns. n:
    the batch of n steps later is sampled from a copy of the weights while this one trains; `mismatch` measures the price.
    Nothing corrects for it unless `corrections` do: weights such as TIS, or rejections such as MRS."""
    refresh_tokens: int = 0
    """In-flight refresh: after so many sampled tokens, also in the middle of a completion, a trajectory waits for the weights of
    the next step and goes on with them, for `staleness` steps at most; every token keeps the log-probability that its own weights
    gave it. Steps then wait for a part of a trajectory and not for all of it (`rlkernel.training.sampling`). With turns *
    max_new_tokens / staleness the longest parts are equal; with less, more tokens are young. 0: a trajectory comes from one set
    of weights."""
    weights: str = "float32"
    """One of `WEIGHTS`: the format of the weights that train. bfloat16: they are rounded at random, AdamW's moments have eight
    bits, and the sampler reads the same weights: 6 bytes per parameter instead of 18 (`rlkernel.training.eight_bit_adamw`)."""
    lora_rank: int = 0
    """The rank of the adapters that are trained; 0: all weights are trained."""
    lora_alpha: float = 32.0
    """The adapters' product is scaled by lora_alpha / lora_rank."""
    engine: str = "auto"
    """What samples, one of `ENGINES` or an engine of your own as `module:Class` (`rlkernel.policy.engine`); auto is what the
    benchmark of generation says for the device."""
    rollout_dtype: str = "auto"
    """One of `ROLLOUT_DTYPES`: the linear layers' weights are rounded to it, row by row, when they are copied to the engine: a
    controlled gap between the policy that samples and the one that is trained; `mismatch` measures it."""
    gradient_checkpointing: bool | None = None
    """Recompute activations in the backward pass; None: for models whose activations are large."""

    validation_every: int = 5
    """Steps between measurements on the validation split; also before the first and after the last step."""
    validation_rollouts: int = 4
    validation_turns: int = 0
    """Turns per trajectory in a measurement on the validation split; 0: as many as in training."""

    device: str = "auto"
    """Where the evaluator runs: auto (the GPUs that are visible, else cpu), cpu (modelled time), cuda (every GPU), cuda:N, or ray
    (the nodes of a Ray cluster, docs/larger.md)."""
    jobs: int = 0
    """Evaluations in flight; 0: one per core. With device ray, on each of its actors."""
    evaluation_gib: int = 0
    """The most GiB that evaluations may take of a card, at most half of one that they share with the policy; 0: that half, or all
    of a card of their own."""
    precision: Precision = Precision.PYTORCH
    """How exact float32 products are on either side of an evaluation."""
    timing_width: float = TIMING_WIDTH
    """Where time is measured: half of a speedup's 95 % interval, relative, at which its trials stop. Example: 0.05 judges more
    answers per second, and a speedup of 1.2 may read 1.14 to 1.26."""

    def __post_init__(self) -> None:
        check_plain("Run", self)
        self._check_parts()
        self._check()
        self._check_refresh()

    def _check_parts(self) -> None:
        """Raises UsageError for a method or a group of settings that is none, such as a class in place of its instance."""
        self._check_tuples()
        check_shown("Run.environment", self.environment)
        check_instance("Run.environment", self.environment, Environment)
        for name, protocol in METHODS.items():
            value = getattr(self, name)
            for method in value if name == "corrections" else (value,):
                check_method(f"Run.{name}", method, protocol)
        for name, kind in SETTINGS.items():
            check_instance(f"Run.{name}", getattr(self, name), kind)

    def _check_tuples(self) -> None:
        """Raises UsageError for problems or corrections that are no tuple, and for a run without problems."""
        given = self.corrections
        if not isinstance(given, tuple):
            said = f"the class {given.__name__}" if isinstance(given, type) else told_kind(given)
            parts = given if isinstance(given, list) else [given]
            names = [(part if isinstance(part, type) else type(part)).__name__ for part in parts]
            written = ", ".join(f"{name}()" for name in names) + "," * (len(names) == 1)
            raise UsageError(f"Run.corrections is {said}: it is a tuple, so write ({written})")
        if not isinstance(self.problems, tuple) or not all(isinstance(problem, Problem) for problem in self.problems):
            raise UsageError(f"Run.problems is {told_kind(self.problems)}: give a tuple of rlkernel.types.Problem")
        if not self.problems:
            raise UsageError("Run.problems is empty: give at least one problem")

    def _check_refresh(self) -> None:
        """Raises UsageError for an in-flight refresh that would refresh nothing, or whose batches cannot be drawn."""
        most = self.turns * self.max_new_tokens
        if self.refresh_tokens < 0:
            raise UsageError(f"Run.refresh_tokens is {self.refresh_tokens}: use 0, or the tokens sampled before new weights come")
        if not self.refresh_tokens:
            return
        if self.staleness < 2:
            raise UsageError(
                f"Run.refresh_tokens is {self.refresh_tokens} and Run.staleness {self.staleness}: a trajectory spans as many "
                "steps as its staleness, so set that to 2 or more, or refresh_tokens to 0"
            )
        if self.refresh_tokens >= most:
            raise UsageError(
                f"Run.refresh_tokens is {self.refresh_tokens}, but a trajectory has at most {most} sampled tokens (turns * "
                f"max_new_tokens): use fewer, such as {max(1, most // self.staleness)}"
            )
        if self.sampler.rounds > 1:
            name = type(self.sampler).__name__
            raise UsageError(
                f"Run.refresh_tokens is {self.refresh_tokens}, but {name} draws again for groups that it does not keep, which "
                "are known too late: use a sampler of one round, or refresh_tokens 0"
            )

    def _check(self) -> None:
        """Raises UsageError for a field that makes no sense."""
        check_name("Run.name", self.name)
        check_number(self, *COUNTS, least=1, whole=True)
        if self.rollouts < 2:
            raise UsageError(f"Run.rollouts is {self.rollouts}: a group needs at least 2 trajectories for a baseline")
        check_number(self, "learning_rate", "max_grad_norm", least=0)
        if not self.temperature > 0:
            raise UsageError(f"Run.temperature is {self.temperature}: it must be positive, since log-probabilities are recorded")
        if self.prompts_per_step % self.updates:
            raise UsageError(
                f"Run.updates is {self.updates} and Run.prompts_per_step {self.prompts_per_step}: every update takes the same "
                "number of whole groups, so the first must divide the second"
            )
        if self.staleness < 0:
            raise UsageError(f"Run.staleness is {self.staleness}: use 0, or the number of steps that batches are sampled ahead")
        if self.optimiser.warmup > self.steps:
            raise UsageError(f"Optimiser.warmup is {self.optimiser.warmup} and Run.steps {self.steps}: warm up for fewer steps")
        if self.lora_rank < 0:
            raise UsageError(f"Run.lora_rank is {self.lora_rank}: use 0 to train all weights, or the rank of the adapters")
        if self.weights not in WEIGHTS:
            raise UsageError(f"Run.weights is {self.weights!r}: use one of {', '.join(WEIGHTS)}")
        check_weights(self.weights, self.lora_rank, self.optimiser.rule, _said)
        if self.evaluation_gib < 0:
            raise UsageError(f"Run.evaluation_gib is {self.evaluation_gib}: use 0 for half of a shared card, or the GiB")
        if self.lora_alpha <= 0:
            raise UsageError(f"Run.lora_alpha is {self.lora_alpha}: it must be positive")
        if self.precision not in tuple(Precision):
            raise UsageError(f"Run.precision is {self.precision!r}: use one of {', '.join(Precision)}")
        if not self.timing_width > 0:
            raise UsageError(f"Run.timing_width is {self.timing_width}: use a number above 0, such as {TIMING_WIDTH}")
        if self.engine not in ENGINES and ":" not in self.engine:
            raise UsageError(f"Run.engine is {self.engine!r}: use one of {', '.join(ENGINES)}, or module:Class")
        if self.rollout_dtype not in ROLLOUT_DTYPES:
            raise UsageError(f"Run.rollout_dtype is {self.rollout_dtype!r}: use one of {', '.join(ROLLOUT_DTYPES)}")
        if self.validation_turns < 0:
            raise UsageError(f"Run.validation_turns is {self.validation_turns}: use 0 for as many as in training")
        if not 0 <= self.seed < 2**32:
            raise UsageError(f"Run.seed is {self.seed}: use a number from 0 to {2**32 - 1}")
        if not 0 <= self.gamma <= 1:
            raise UsageError(f"Run.gamma is {self.gamma}: a discount is between 0 and 1")


def _said(name: str) -> str:
    """Where a run's field is written."""
    return "Optimiser.rule" if name == "rule" else f"Run.{name}"


def to_json(value: Any) -> Any:
    """Dump a configuration with class names, so that two estimators with equal fields still differ.

    >>> to_json(Path("a"))
    'a'
    """
    if isinstance(value, Problem):
        text = value.source + value.prompt
        return {"name": value.name, "sha256": hashlib.sha256(text.encode()).hexdigest()[:16]}
    if is_dataclass(value) and not isinstance(value, type):
        return {"class": type(value).__name__, **{f.name: to_json(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    raise TypeError(f"cannot dump {type(value).__name__} into a manifest: give it dataclass fields of plain values")


def fingerprint(run: Run) -> str:
    """16 hex digits that change with anything in `run`, the code of its methods included; a resumed run must have the same."""
    return hashlib.sha256(json.dumps([to_json(run), code_of(run)], sort_keys=True).encode()).hexdigest()[:16]
