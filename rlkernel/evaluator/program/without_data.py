"""Operators and initialisers whose results have a known shape, and which torch does not run on tensors without data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from rlkernel.evaluator.program import cells, recurrent


def _binomial(count: torch.Tensor, prob: torch.Tensor, generator: Any = None) -> torch.Tensor:
    del prob, generator
    return torch.empty_like(count)


def _dirichlet(concentrations: torch.Tensor, generator: Any = None) -> torch.Tensor:
    del generator
    return torch.empty_like(concentrations)


def _geqrf(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Reflectors in the place of the matrix, column by column, and their factors."""
    *batch, rows, columns = matrix.shape
    return matrix.new_empty((*batch, columns, rows)).mT, matrix.new_empty((*batch, min(rows, columns)))


def _bincount(values: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> torch.Tensor:
    """Counts of `minlength` values, which has to hold all of them."""
    if minlength < 1:
        raise NotImplementedError("how many values there are depends on the values")
    dtype = torch.int64 if weights is None else weights.dtype if weights.dtype is torch.float32 else torch.float64
    return values.new_empty((minlength,), dtype=dtype)


def _bincount_on_cpu(values: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> torch.Tensor:
    """What `torch.bincount` gives, if that is as long as a trace has seen it. Raises RuntimeError."""
    found = torch.bincount(values, weights, minlength)
    if len(found) != minlength:
        raise RuntimeError(f"{len(found) - 1} is among the values, of which minlength={minlength} does not hold all")
    return found


def _ctc_loss(
    log_probs: torch.Tensor, targets: torch.Tensor, *lengths: torch.Tensor | int | bool, **settings: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of each sequence, and the sums over its prefixes, of which there are at most as many as there are labels."""
    del lengths, settings
    times, *batch, _ = log_probs.shape
    prefixes = 2 * targets.shape[-1] + 1
    return log_probs.new_empty(batch), log_probs.new_empty((*batch, times, prefixes))


CALLS: dict[str, Callable[..., Any]] = {
    "aten.binomial.default": _binomial,
    "aten._sample_dirichlet.default": _dirichlet,
    "aten.geqrf.default": _geqrf,
    "aten.lstm.input": recurrent.without_data,
    "aten.gru.input": recurrent.without_data,
    "aten.rnn_tanh.input": recurrent.without_data,
    "aten.rnn_relu.input": recurrent.without_data,
    "aten.bincount.default": _bincount,
    "aten._ctc_loss.Tensor": _ctc_loss,
    **cells.WITHOUT_DATA,
}
"""Operator -> what returns tensors like its results."""
ON_CPU: dict[str, Callable[..., Any]] = {"aten.bincount.default": _bincount_on_cpu, **cells.ON_CPU}
"""Operator -> what computes it on a CPU, where that is not the operator itself."""


def truncated_normal(
    tensor: torch.Tensor, mean: float, std: float, a: float, b: float, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Fill `tensor` from a normal distribution between `a` and `b`, by its inverse. Newer versions of torch draw until every
    value is inside, which cannot be seen on tensors without data."""
    low, high = ((1.0 + math.erf((limit - mean) / std / math.sqrt(2.0))) / 2.0 for limit in (a, b))
    with torch.no_grad():
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator).erfinv_()
        return tensor.mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b)
