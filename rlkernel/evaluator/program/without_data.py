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


CALLS: dict[str, Callable[..., Any]] = {
    "aten.binomial.default": _binomial,
    "aten._sample_dirichlet.default": _dirichlet,
    "aten.geqrf.default": _geqrf,
    "aten.lstm.input": recurrent.without_data,
    "aten.gru.input": recurrent.without_data,
    "aten.rnn_tanh.input": recurrent.without_data,
    "aten.rnn_relu.input": recurrent.without_data,
    **cells.WITHOUT_DATA,
}
"""Operator -> what returns tensors like its results."""


def truncated_normal(
    tensor: torch.Tensor, mean: float, std: float, a: float, b: float, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Fill `tensor` from a normal distribution between `a` and `b`, by its inverse. Newer versions of torch draw until every
    value is inside, which cannot be seen on tensors without data."""
    low, high = ((1.0 + math.erf((limit - mean) / std / math.sqrt(2.0))) / 2.0 for limit in (a, b))
    with torch.no_grad():
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator).erfinv_()
        return tensor.mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b)
