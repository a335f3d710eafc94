"""Groups of a `Run`'s fields: its loss, its optimiser, and when a trajectory ends early. Their defaults add nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlkernel.checks import check_number, check_word
from rlkernel.errors import UsageError
from rlkernel.types import Turn

Kind = Literal["clip", "cispo", "reinforce"]
Ratio = Literal["token", "turn", "sequence"]
Decay = Literal["constant", "cosine"]
Rule = Literal["adamw", "sgd"]


@dataclass(frozen=True)
class Loss:
    """What a sampled token adds to the loss, with A its advantage and r = pi / pi_old, where pi_old is the policy before the
    first update of the batch (not the one that sampled: `Run.corrections` answer that).

    With one update per batch (`Run.updates`, `Run.epochs`) r is 1, and all kinds have the same gradient.
    """

    kind: Kind = "clip"
    """clip: -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) (PPO, arXiv 1707.06347), so that a token beyond its bound has no
    gradient. cispo: -min(r, 1 + clip_high) A log pi without a gradient through r (arXiv 2506.13585), so that every token has
    one. reinforce: -A log pi, without a ratio."""
    ratio: Ratio = "token"
    """What r is of: the token; or the geometric mean over the trained tokens of its turn, or of its trajectory (`sequence`: GSPO,
    arXiv 2507.18071). The gradient is each token's own, so that turns keep their advantages (GSPO-token, section 4.3 there)."""
    clip_low: float = 0.2
    clip_high: float = 0.28
    beta: float = 0.0
    """Adds beta r (rho - 1 - log rho) with rho = pi_ref / pi: the KL from the policy at the start of the run, by the estimator
    k3, whose gradient r makes unbiased (arXiv 2512.02556, section 3.1). Whatever `ratio` says, r is that of the token here, and
    the weights of corrections multiply the term: it is unbiased for old samples, too, where the weights are. It costs a second
    model's memory, unless adapters train."""
    entropy: float = 0.0
    """Subtracts this times the entropy of the policy at the token, in nats. Weights of corrections do not multiply it."""

    def __post_init__(self) -> None:
        check_word(self, "kind", Kind)
        check_word(self, "ratio", Ratio)
        check_number(self, "clip_low", "clip_high", "beta", "entropy", least=0)
        if self.kind == "reinforce" and self.ratio != "token":
            raise UsageError(f"Loss.ratio is {self.ratio!r}, but the kind 'reinforce' has no ratio: leave it at 'token'")


@dataclass(frozen=True)
class Optimiser:
    """The rule of an update, how its rate goes over the steps, and what decays. `Run.learning_rate` is the largest rate."""

    rule: Rule = "adamw"
    """adamw: the step hardly depends on the size of a gradient. sgd: it is the learning rate times the gradient, without
    momentum, so that a factor in the advantage is a factor in the step; `Run.max_grad_norm` 0 then clips nothing."""
    warmup: int = 0
    """Steps in which the learning rate rises in equal parts: step i of them, from 0, has (i + 1) / warmup of it. None has 0,
    which would throw away a batch that was sampled and judged."""
    decay: Decay = "constant"
    """What follows the warm-up. cosine: half a cosine, which would be 0 in the step after the last."""
    weight_decay: float = 0.0
    """In each update, weights lose this times the learning rate of themselves; biases and norms lose nothing."""

    def __post_init__(self) -> None:
        check_word(self, "rule", Rule)
        check_word(self, "decay", Decay)
        check_number(self, "warmup", least=0, whole=True)
        check_number(self, "weight_decay", least=0)


@dataclass(frozen=True)
class Stop:
    """When a trajectory ends before its last turn, in training and in validation. Groups then shrink with the turn."""

    speedup: float | None = None
    """It ends after a correct turn that is at least so many times as fast as the reference."""
    text: str = ""
    """It ends after a completion that contains this text, by which the policy says that it has finished."""

    def __post_init__(self) -> None:
        check_number(self, "speedup", above=0, none="no such end")

    def __call__(self, turn: Turn) -> bool:
        """Whether the trajectory ends after this turn."""
        facts = turn.evaluation
        fast = self.speedup is not None and facts.correct and facts.speedup is not None and facts.speedup >= self.speedup
        return fast or bool(self.text and self.text in turn.completion.text)
