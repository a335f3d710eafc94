"""torch's switches of this process for tf32, as a precision wants them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from rlkernel.types import Precision


def set_precision(precision: Precision) -> None:
    """Switch tf32 on or off for products, and for what cuDNN computes. PYTORCH: as torch ships."""
    torch.backends.cuda.matmul.allow_tf32 = precision is Precision.TF32
    torch.backends.cudnn.allow_tf32 = precision is not Precision.STRICT


@contextmanager
def judging(precision: Precision) -> Iterator[None]:
    """What the reference computes inside is what answers are held against: exact under PYTORCH, although what cuDNN ships with is
    tf32 and is timed so. Its own error is then float32's, and not a multiple of tf32's."""
    set_precision(Precision.STRICT if precision is Precision.PYTORCH else precision)
    try:
        yield
    finally:
        set_precision(precision)
