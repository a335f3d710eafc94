"""TritonRL's multi-layer verification (arXiv 2510.17891) as a gate on a reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from algorithms.speed_reward import SpeedReward
from rlkernel.interfaces import Reward
from rlkernel.types import Evaluation, Status

Layer = Literal["syntax", "functionality", "compilation", "correctness"]

NO_TRITON = frozenset({Status.NO_CODE, Status.INVALID, Status.NO_KERNEL})
NOT_COMPILED = frozenset({Status.UNTRACEABLE, Status.COMPILE_ERROR})
HEAVY = (
    *("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "matmul", "linear", "einsum"),
    *("convolution", "_convolution", "conv1d", "conv2d", "conv3d"),
    *("scaled_dot_product_attention", "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu"),
    *("_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_attention_math"),
    *("native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit", "_softmax", "_log_softmax"),
    *("max_pool2d_with_indices", "avg_pool1d", "avg_pool2d", "lstm", "gru"),
)
"""ATen operators, without namespace and overload, that do a module's main work."""


@dataclass(frozen=True)
class LayeredReward:
    """R = [syntax][functionality][compilation][correctness] * inner reward, each layer judged only if those before it pass.

    Syntax: there is a module, and it launches a Triton kernel whose result is used. Functionality: no heavy operation is left to
    ATen. Compilation and correctness: as the evaluator found. Speed is the inner reward.

    Worked example: a correct Triton epilogue at 1.4x behind `aten.mm` fails functionality and is worth 0; with the product in the
    kernel, too, it is 0.5 + 0.5 * 1.4 = 1.2.
    """

    inner: Reward = SpeedReward()  # noqa: RUF009  (a frozen value)
    heavy: tuple[str, ...] = HEAVY
    bottleneck: bool = True
    """The reference's costliest operator counts as heavy, too."""

    def failed(self, evaluation: Evaluation) -> Layer | None:
        """The first layer that does not pass; None when all do."""
        if evaluation.status in NO_TRITON:
            return "syntax"
        heavy = {*self.heavy, *(_name(fact.op) for fact in evaluation.reference_ops[: int(self.bottleneck)])}
        if evaluation.status is Status.INCONSISTENT or any(_name(fact.op) in heavy for fact in evaluation.ops):
            return "functionality"
        if evaluation.status in NOT_COMPILED:
            return "compilation"
        return None if evaluation.correct else "correctness"

    def __call__(self, evaluation: Evaluation) -> float:
        """See `rlkernel.interfaces.Reward`. Raises what the inner reward raises."""
        return self.inner(evaluation) if self.failed(evaluation) is None else 0.0


def _name(op: str) -> str:
    """
    >>> _name("aten.mm.default"), _name("aten.mm")
    ('mm', 'mm')
    """
    return op.removeprefix("aten.").split(".")[0]
