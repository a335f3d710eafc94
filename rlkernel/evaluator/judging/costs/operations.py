"""How many operations an ATen operator computes, by name, where arithmetic may bound it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from rlkernel.evaluator.program import recurrent
from rlkernel.evaluator.program.operators import argument, base_name
from rlkernel.evaluator.program.schema import Op

Tensors = Sequence[torch.Tensor]


def _convolution(step: Op, read: Tensors, made: Tensors) -> float:
    weight = read[1]
    transposed = bool(argument(step, "transposed", False)) or "transpose" in base_name(step.op)
    return 2.0 * (read[0] if transposed else made[0]).numel() * weight.numel() / max(1, weight.shape[0])


def _trilinear(step: Op, read: Tensors, made: Tensors) -> float:
    """Three factors, broadcast over the dimensions that are inserted into each."""
    shapes = []
    for tensor, name in zip(read, ("expand1", "expand2", "expand3"), strict=False):
        shape = list(tensor.shape)
        for dim in sorted(argument(step, name, ())):
            shape.insert(dim, 1)
        shapes.append(shape)
    return 3.0 * float(math.prod(max(sizes) for sizes in zip(*shapes, strict=True)))


def _attention(step: Op, read: Tensors, made: Tensors) -> float:
    """The products of queries and keys, and of their weights and values, which may be of another width."""
    queries, keys, values = read[:3]
    rows = queries.numel() / max(1, queries.shape[-1])
    return 2.0 * rows * keys.shape[-2] * (queries.shape[-1] + values.shape[-1])


def _fourier(step: Op, read: Tensors, made: Tensors) -> float:
    size = max(read[0].numel(), made[0].numel())
    return 5.0 * size * math.log2(max(2, size))


def _of_matrices(cubes: float) -> Callable[[Op, Tensors, Tensors], float]:
    """The cost of a factorisation, as so many cubes of the matrices' size, and of a solution for each column besides."""

    def count(step: Op, read: Tensors, made: Tensors) -> float:
        matrix = max(read, key=lambda tensor: tensor.numel())
        size = matrix.shape[-1]
        return cubes * matrix.numel() * size + 2.0 * made[0].numel() * size

    return count


def _recurrent(step: Op, read: Tensors, made: Tensors) -> float:
    """Every weight matrix is multiplied once with every element of the sequence and of the batch."""
    cells = read[0].numel() / max(1, read[0].shape[-1])
    return 2.0 * cells * sum(t.numel() for t in read[1:] if t.dim() == 2)


_OF_METHODS: dict[str, Callable[[Op, Tensors, Tensors], float]] = {
    "linalg_solve_triangular": _of_matrices(0.0), "triangular_solve": _of_matrices(0.0), "cholesky_solve": _of_matrices(0.0),
    "linalg_cholesky_ex": _of_matrices(1 / 3), "linalg_inv_ex": _of_matrices(2.0), "linalg_lu_factor_ex": _of_matrices(2 / 3),
    "linalg_lu": _of_matrices(2 / 3), "_linalg_det": _of_matrices(2 / 3), "_linalg_solve_ex": _of_matrices(2 / 3),
    "linalg_qr": _of_matrices(4 / 3), "_linalg_eigh": _of_matrices(9.0), "_linalg_svd": _of_matrices(20.0),
    "_linalg_slogdet": _of_matrices(2 / 3), "linalg_eig": _of_matrices(25.0), "linalg_ldl_factor_ex": _of_matrices(1 / 3),
    "linalg_ldl_solve": _of_matrices(0.0), "linalg_lu_solve": _of_matrices(0.0), "cholesky": _of_matrices(1 / 3),
    "cholesky_inverse": _of_matrices(2 / 3), "linalg_householder_product": _of_matrices(4 / 3), "geqrf": _of_matrices(4 / 3),
    "ormqr": _of_matrices(2.0), "linalg_matrix_exp": _of_matrices(16.0), "linalg_pinv": _of_matrices(22.0),
    "_fft_c2c": _fourier, "_fft_c2r": _fourier, "_fft_r2c": _fourier,
}  # fmt: skip
"""Operations of a library's own method, where another one may need far fewer."""
FLOPS: dict[str, Callable[[Op, Tensors, Tensors], float]] = {
    "mm": lambda step, read, made: 2.0 * made[0].numel() * read[0].shape[-1],
    "bmm": lambda step, read, made: 2.0 * made[0].numel() * read[0].shape[-1],
    "addmm": lambda step, read, made: 2.0 * made[0].numel() * read[1].shape[-1],
    "baddbmm": lambda step, read, made: 2.0 * made[0].numel() * read[1].shape[-1],
    "addbmm": lambda step, read, made: 2.0 * read[1].numel() * read[2].shape[-1],
    "mv": lambda step, read, made: 2.0 * read[0].numel(), "addmv": lambda step, read, made: 2.0 * read[1].numel(),
    "dot": lambda step, read, made: 2.0 * read[0].numel(), "vdot": lambda step, read, made: 2.0 * read[0].numel(),
    "addr": lambda step, read, made: 2.0 * made[0].numel(),
    "conv_tbc": lambda step, read, made: 2.0 * made[0].numel() * read[1].shape[0] * read[1].shape[1],
    "convolution": _convolution, "_convolution": _convolution, "convolution_overrideable": _convolution,
    "cudnn_convolution": _convolution, "cudnn_convolution_relu": _convolution, "cudnn_convolution_add_relu": _convolution,
    "cudnn_convolution_transpose": _convolution, "conv_depthwise3d": _convolution,
    "slow_conv_dilated2d": _convolution, "slow_conv_dilated3d": _convolution, "slow_conv_transpose2d": _convolution,
    "slow_conv_transpose3d": _convolution,
    "scaled_dot_product_attention": _attention,
    "_trilinear": _trilinear,
    "_cdist_forward": lambda step, read, made: 3.0 * made[0].numel() * read[0].shape[-1],
    "_euclidean_dist": lambda step, read, made: 2.0 * made[0].numel() * (read[0].shape[-1] + 2),  # a product with norms beside
    "_pdist_forward": lambda step, read, made: 3.0 * made[0].numel() * read[0].shape[-1],
    **dict.fromkeys(recurrent.GATES, _recurrent),
    "_int_mm": lambda step, read, made: 2.0 * made[0].numel() * read[0].shape[-1],
    "_scaled_mm": lambda step, read, made: 2.0 * made[0].numel() * read[0].shape[-1],
    **_OF_METHODS,
}  # fmt: skip
"""Operations of operators that arithmetic may bound; a multiply-add counts as two."""
COMPLEX, COMPLEX_AT_LEAST = 4.0, 3.0
"""Real multiplications in a complex one, and the fewest that Gauss's method needs."""


def _of_complex(step: Op, made: Tensors) -> float:
    """Real multiplications in one of the numbers that a step multiplies: 4 of complex ones. A transform's own count has them."""
    return COMPLEX if made and made[0].is_complex() and FLOPS[base_name(step.op)] is not _fourier else 1.0


def flops(step: Op, read: Tensors, made: Tensors) -> float:
    """Operations that arithmetic may bound; 0 for what memory bounds. `read` in the order of the schema's arguments."""
    count = FLOPS.get(base_name(step.op))
    return 0.0 if count is None else _of_complex(step, made) * count(step, read, made)


def sum_length(step: Op, read: Tensors, made: Tensors) -> float:
    """How many terms the sums of a product have; of an attention, those of its scores."""
    if base_name(step.op) == "scaled_dot_product_attention":
        return float(read[0].shape[-1])
    return flops(step, read, made) / (2.0 * max(1, made[0].numel()))


def share_done(step: Op, read: Tensors) -> float:
    """The share of an operator's operations that it does: of an attention with a causal mask, those below the diagonal. What a
    reference needs of its products, see `least_flops`, does not become less by it."""
    if base_name(step.op) != "scaled_dot_product_attention" or not argument(step, "is_causal", False):
        return 1.0
    queries, keys = read[0].shape[-2], read[1].shape[-2]
    square = min(queries, keys)
    return (square * (square + 1) / 2 + (queries - square) * keys) / max(1, queries * keys)


def in_sequence(step: Op, read: Tensors) -> int:
    """How many parts of an operator must run one after the other: the cells of a recurrent layer, otherwise one."""
    return recurrent.sequence_length(step, read[0]) if recurrent.is_recurrent(step.op) else 1


def is_of_cudnn(op: str) -> bool:
    """Whether cuDNN computes an operator, a convolution or a recurrent layer: its own precision is another than that of
    products."""
    return FLOPS.get(base_name(op)) is _convolution or base_name(op) == "conv_tbc" or recurrent.is_recurrent(op)


def least_flops(step: Op, read: Tensors, made: Tensors) -> float:
    """Operations of products, which any method needs but for what a mask hides. A complex product can be made of three real
    ones."""
    if base_name(step.op) in _OF_METHODS:
        return 0.0
    return flops(step, read, made) * (COMPLEX_AT_LEAST / COMPLEX if made[0].is_complex() else 1.0)
