"""Dataclasses, namespaces, named tuples and objects of a file's own classes are arguments of both sides."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.references.arguments import spec
from rlkernel.evaluator.judging.references.traced_reference import TracedReference
from rlkernel.evaluator.trace.passing import decode_spec
from rlkernel.evaluator.trace.recorder import Recorder
from rlkernel.reference import load_reference

FILE = """
import enum
from argparse import Namespace
from collections import namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace
import numpy as np
import torch
Sizes = namedtuple("Sizes", "rows scale")
class Kind(enum.Enum):
    NORM = "norm"
@dataclass(frozen=True)
class Inner:
    scale: float = 0.5
@dataclass
class Config:
    rows: int = 8
    inner: Inner = field(default_factory=Inner)
    @property
    def scale(self):
        return self.inner.scale
    def half(self):
        return self.rows // 2
class Plain:
    rows = 8
    def __init__(self):
        self.scale = 0.5
    def half(self):
        return 4
class Model(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.scale = {scale}
    def forward(self, x):
        return x * self.scale
def get_inputs():
    return [torch.ones(4, 8)]
def get_init_inputs():
    return [{config}]
"""


def candidates_view(config: str, scale: str = "config.scale") -> Any:
    """What a candidate is given, by way of a message."""
    reference = load_reference(FILE.format(config=config, scale=scale), small=False, name="p")
    TracedReference(reference, H200)
    return decode_spec(json.loads(json.dumps(spec(reference.init_inputs(0)[0]))), Recorder(trusted=False), [])[0]


@pytest.mark.parametrize(
    "config", ["Config()", "Plain()", "Sizes(8, 0.5)", "SimpleNamespace(rows=8, scale=0.5)", "Namespace(rows=8, scale=0.5)"]
)
def test_a_candidate_is_given_what_a_record_holds(config: str) -> None:
    found = candidates_view(config)
    assert (found.rows, found.scale) == (8, 0.5)


@pytest.mark.parametrize("config", ["Config()", "Plain()"])
def test_a_reference_keeps_the_methods_of_its_own_records(config: str) -> None:
    found = candidates_view(config, scale="config.half()")
    assert found.rows == 8 and not hasattr(found, "half")


def test_what_records_hold_may_be_records_and_other_plain_values() -> None:
    found = candidates_view("Config(rows=np.int64(3), inner=SimpleNamespace(scale=torch.half))", scale="config.rows")
    assert (found.rows, found.inner.scale) == (3, torch.half)
    kinds = candidates_view("{3: torch.bfloat16, 'k': Kind.NORM, 'd': torch.device('cuda'), 'r': range(2)}", scale="1.0")
    assert (kinds[3], kinds["k"].value, kinds["d"], kinds["r"]) == (torch.bfloat16, "norm", torch.device("cuda"), range(2))


@pytest.mark.parametrize("config", ["SimpleNamespace(scale=0.5, kept={1, 2})", "torch.nn.GELU()", "[torch.nn.GELU]"])
def test_what_is_no_plain_value_is_told_in_one_line(config: str) -> None:
    with pytest.raises(BrokenReference, match=r"^p: get_init_inputs returned a (set|GELU|type); use tensors"):
        candidates_view(config, scale="0.5")
