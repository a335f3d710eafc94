"""TritonRL's multi-layer verification (arXiv 2510.17891) as a gate on a reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.interfaces import Reward
from rlkernel.types import Evaluation, Status

Layer = Literal["syntax", "functionality", "compilation", "correctness"]

NO_TRITON = frozenset({Status.NO_CODE, Status.INVALID, Status.NO_KERNEL})
NOT_COMPILED = frozenset({Status.UNTRACEABLE, Status.COMPILE_ERROR})
HEAVY = (
    *("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "addr", "dot", "vdot", "matmul", "linear", "einsum"),
    *("_trilinear", "_scaled_mm", "_int_mm", "_cdist_forward", "_euclidean_dist", "_pdist_forward"),
    *("convolution", "_convolution", "conv1d", "conv2d", "conv3d", "cudnn_convolution"),
    *("scaled_dot_product_attention", "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu"),
    *("_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_attention_math"),
    *("_native_multi_head_attention", "_transformer_encoder_layer_fwd"),
    *("native_layer_norm", "_fused_rms_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit"),
    *("_native_batch_norm_legit_no_training", "_batch_norm_with_update", "_batch_norm_no_update", "cudnn_batch_norm"),
    *("_softmax", "_log_softmax", "logsumexp", "cumsum", "cumprod"),
    *("avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices"),
    *("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d"),
    *("lstm", "gru", "mkldnn_rnn_layer", "_cudnn_rnn", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "_embedding_bag"),
)
"""ATen operators, without namespace and overload, that do a module's main work."""


@dataclass(frozen=True)
class LayeredReward:
    """R = [syntax][functionality][compilation][correctness] * inner reward, each layer judged only if those before it pass.

    Syntax asks for a module that launches a Triton kernel whose result is used. Functionality asks that no heavy operation is
    left to ATen. Compilation and correctness are as the evaluator found them. Speed is the inner reward.

    Worked example: a correct Triton epilogue at 1.4x behind `aten.mm` fails functionality and is worth 0; with the product in the
    kernel, too, it is 0.5 + 0.5 * 1.4 = 1.2.
    """

    inner: Reward = SpeedReward()  # noqa: RUF009  (a frozen value)
    heavy: tuple[str, ...] = HEAVY
    bottleneck: bool = True
    """The reference's costliest operator counts as heavy, too."""

    def failed(self, evaluation: Evaluation) -> Layer | None:
        """The first layer that does not pass; None when all do."""
        # Nothing is recorded of a candidate that did not run to its end, and of a wrong one where time is measured.
        recorded = bool(evaluation.launches or evaluation.ops)
        if evaluation.status in NO_TRITON or (recorded and not any(launch.live for launch in evaluation.launches)):
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
