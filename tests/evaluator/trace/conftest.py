"""A tracer child dies afterwards; the process of the tests does not, so each file leaves what it has found."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch
import triton


@pytest.fixture(autouse=True, scope="module")
def _nothing_stays() -> Iterator[None]:
    driver, cuda = triton.runtime.driver._active, torch.cuda.is_available()
    yield
    triton.runtime.driver._active = driver
    sys.modules.pop("candidate", None)
    assert torch.cuda.is_available() is cuda
