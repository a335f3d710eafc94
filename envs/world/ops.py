"""The operations that tasks are made of: elementwise ones, row and column operators, products, windows and scans.

Each has its line in torch. An elementwise one has its line in Triton, too; the others are written by `envs.world.write`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from envs import chains


class Kind(StrEnum):
    """What an operation does to the shape, and along which axis it looks."""

    ELEMENT = "element"
    """Each element by itself; with an operand, its column's parameter or the same element of a second input."""
    ROW = "row"
    """A normalisation of each row; the shape stays."""
    FOLD = "fold"
    """A reduction of each row to one number."""
    SCAN = "scan"
    """A running sum along each row."""
    COLUMN = "column"
    """A reduction over the rows to one number per column."""
    COLUMN_NORM = "column_norm"
    """A normalisation of each column; the shape stays."""
    POOL = "pool"
    """One number per window of a row."""
    PRODUCT = "product"
    """A matrix product with the last axis."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation. `torch` and `triton` are its lines, with `{0}` and `{1}` where its constants stand."""

    name: str
    kind: Kind
    torch: str
    triton: str = ""
    """The line of an elementwise operation; `{operand}` stands for the loaded operand."""
    constants: tuple[tuple[str, ...], ...] = ()
    vector: str = ""
    """The parameter with one value per column that the operation takes, e.g. `bias`."""
    tensor: str = ""
    """The input of the same shape that the operation takes, e.g. `r`."""
    traffic: float = 2.0
    """Bytes that eager PyTorch moves for it, in units of its input; a product's are counted apart."""
    launches: int = 1
    """Kernels that eager PyTorch launches for it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation with its constants as they are written."""

    op: Op
    constants: tuple[str, ...] = ()

    @property
    def torch(self) -> str:
        return self.op.torch.format(*self.constants)

    @property
    def plain(self) -> bool:
        """Whether the step is elementwise and takes nothing but constants."""
        return self.op.kind is Kind.ELEMENT and not self.op.vector and not self.op.tensor


def _elements() -> tuple[Op, ...]:
    plain = [Op(op.name, Kind.ELEMENT, op.torch, op.triton, op.constants) for op in chains.OPS if op.name != "bias"]
    return (
        *plain,
        Op("bias", Kind.ELEMENT, "x = x + self.bias", "x = x + {operand}", vector="bias"),
        Op("weight", Kind.ELEMENT, "x = x * self.weight", "x = x * {operand}", vector="weight"),
        Op("residual", Kind.ELEMENT, "x = x + r", "x = x + {operand}", tensor="r", traffic=3.0),
        Op("gate", Kind.ELEMENT, "x = x * g", "x = x * {operand}", tensor="g", traffic=3.0),
    )


_RMS = "x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)"
_STANDARD = "x = (x - x.mean(0)) * torch.rsqrt(x.var(0, unbiased=False) + 1e-5)"
_WINDOWS = (("2",), ("3",), ("4",), ("5",), ("8",))

OPS: tuple[Op, ...] = (
    *_elements(),
    Op("softmax", Kind.ROW, "x = torch.softmax(x, dim=-1)"),
    Op("log_softmax", Kind.ROW, "x = torch.log_softmax(x, dim=-1)"),
    Op("layer_norm", Kind.ROW, "x = F.layer_norm(x, x.shape[-1:])"),
    Op("rms_norm", Kind.ROW, _RMS, traffic=5.0, launches=5),
    Op("l2_norm", Kind.ROW, "x = F.normalize(x, dim=-1)", traffic=3.0, launches=3),
    Op("sum", Kind.FOLD, "x = x.sum(-1)", traffic=1.0),
    Op("mean", Kind.FOLD, "x = x.mean(-1)", traffic=1.0),
    Op("max", Kind.FOLD, "x = x.amax(-1)", traffic=1.0),
    Op("logsumexp", Kind.FOLD, "x = torch.logsumexp(x, dim=-1)", traffic=6.0, launches=7),
    Op("norm", Kind.FOLD, "x = x.norm(dim=-1)", traffic=1.0),
    Op("cumsum", Kind.SCAN, "x = torch.cumsum(x, dim=-1)"),
    Op("column_sum", Kind.COLUMN, "x = x.sum(0)", traffic=1.0),
    Op("column_mean", Kind.COLUMN, "x = x.mean(0)", traffic=1.0),
    Op("column_max", Kind.COLUMN, "x = x.amax(0)", traffic=1.0),
    Op("column_softmax", Kind.COLUMN_NORM, "x = torch.softmax(x, dim=0)"),
    Op("column_standard", Kind.COLUMN_NORM, _STANDARD, traffic=6.0, launches=6),
    Op("column_l2", Kind.COLUMN_NORM, "x = F.normalize(x, dim=0)", traffic=3.0, launches=3),
    Op("avg_pool", Kind.POOL, "x = F.avg_pool1d(x, {0})", constants=_WINDOWS, traffic=1.3),
    Op("max_pool", Kind.POOL, "x = F.max_pool1d(x, {0})", constants=_WINDOWS, traffic=1.3),
    Op("matmul", Kind.PRODUCT, "x = x @ self.w"),
    Op("linear", Kind.PRODUCT, "x = F.linear(x, self.w)"),
    Op("bmm", Kind.PRODUCT, "x = torch.bmm(x, w)"),
)
BY_NAME = {op.name: op for op in OPS}
"""Every operation by its name."""
NEUTRAL = {
    **dict.fromkeys(("softmax", "log_softmax", "max", "logsumexp", "column_max", "column_softmax"), '-float("inf")'),
    **dict.fromkeys(("layer_norm", "rms_norm", "l2_norm", "sum", "mean", "norm", "cumsum"), "0.0"),
    **dict.fromkeys(("column_sum", "column_mean", "column_standard", "column_l2"), "0.0"),
}
"""The value that an element beyond the edge must have, so that the operator is the same without it."""
