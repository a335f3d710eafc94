"""Reference files: loading, and one clear line for each way to be broken."""

from __future__ import annotations

import sys

import pytest
import torch

from rlkernel import reference
from rlkernel.errors import BrokenReference
from rlkernel.reference import load_reference

SCALE = '''"""Scaled sum with a bias."""
import torch
import torch.nn as nn

ROWS = 64
COLS = 128
HALF = COLS // 2

SMALL = {"ROWS": 2, "COLS": 6}

class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        return x * self.scale + self.bias

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return [3.0]
'''

MINIMAL = """
import torch
class Model(torch.nn.Module):
    def __init__(self{arguments}):
        super().__init__()
        self.seen = [{names}]
    def forward(self, x):
        return x
def get_inputs():
    return {inputs}
def get_init_inputs():
    return {init}
"""


def minimal(arguments: str = "", names: str = "", inputs: str = "[torch.ones(2)]", init: str = "[]") -> str:
    return MINIMAL.format(arguments=arguments, names=names, inputs=inputs, init=init)


def test_full_and_small_shapes_differ_and_derived_constants_follow() -> None:
    full, small = load_reference(SCALE, small=False), load_reference(SCALE, small=True)
    assert full.inputs(0)[0].shape == (64, 128)
    assert small.inputs(0)[0].shape == (2, 6)
    assert small.namespace["HALF"] == 3


def test_the_same_seed_gives_the_same_values_and_another_seed_others() -> None:
    reference = load_reference(SCALE, small=True)
    one, two, other = reference.inputs(7)[0], reference.inputs(7)[0], reference.inputs(8)[0]
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    torch.manual_seed(7)
    assert torch.equal(one, torch.randn(2, 6))
    assert torch.equal(reference.model(5).bias, reference.model(5).bias)
    assert not torch.equal(reference.model(5).bias, reference.model(6).bias)


def test_weights_come_right_after_the_seed() -> None:
    model = load_reference(SCALE, small=True).model(5)
    torch.manual_seed(5)
    assert torch.equal(model.bias, torch.randn(6))


def test_float32_is_the_default_type_and_the_callers_choice_is_restored() -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        reference = load_reference(SCALE, small=True)
        assert reference.inputs(0)[0].dtype == torch.float32
        assert reference.model(0).bias.dtype == torch.float32
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize(
    ("arguments", "names", "init", "seen"),
    [
        ("", "", "[]", []),
        (", a, b", "a, b", "[1, (2, 3)]", [1, (2, 3)]),
        (", a, b=0", "a, b", "{'a': 1, 'b': 2}", [1, 2]),
        (", a, b=0", "a, b", "[[1], {'b': 5}]", [1, 5]),
        (", a, b", "a, b", "[[1], {'not_a_parameter': 5}]", [[1], {"not_a_parameter": 5}]),
    ],
)
def test_the_shapes_of_init_inputs(arguments: str, names: str, init: str, seen: list[object]) -> None:
    assert load_reference(minimal(arguments, names, init=init), small=False).model(0).seen == seen


def test_a_constructor_that_takes_nothing_needs_no_init_inputs() -> None:
    source = "import torch\nclass Model(torch.nn.Module): pass\ndef get_inputs(): return [torch.ones(1)]\n"
    reference = load_reference(source, small=True)
    assert reference.init_inputs(3) == ([], {}) and isinstance(reference.model(0), torch.nn.Module)


def test_inputs_may_be_scalars_and_nested_lists() -> None:
    values = load_reference(minimal(inputs="(2, 0.5, True, [torch.ones(1), [3]])"), small=False).inputs(0)
    assert values[:3] == [2, 0.5, True]
    assert values[3][1] == [3]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("class Model(:\n", "p: line 1: invalid syntax"),
        ("x = 1\x00", "p: source code string cannot contain null bytes"),
        ("import torch\n\nx = 1 / 0\n", "p: importing it raised ZeroDivisionError on line 3: division by zero"),
        (
            "class Model: pass\n",
            "p: it defines no get_inputs; a reference has Model, get_inputs, and get_init_inputs if Model needs arguments",
        ),
        (
            "class ModelNew: pass\n",
            "p: it defines no Model, get_inputs; a reference has Model, get_inputs, and get_init_inputs if Model needs arguments"
            "; it has a ModelNew, so it is a candidate, and the reference is named before it",
        ),
        (
            "class Model:\n    def __init__(self, width, *, depth, bias=True, **more): pass\ndef get_inputs(): return []\n",
            "p: it defines no get_init_inputs, and Model needs width, depth",
        ),
        (
            "class Model: pass\ndef get_inputs(): return []\nget_init_inputs = [3]\n",
            "p: it defines no get_init_inputs; a reference has Model, get_inputs, and get_init_inputs if Model needs arguments",
        ),
    ],
)
def test_a_broken_file_is_one_clear_line(source: str, message: str) -> None:
    with pytest.raises(BrokenReference) as caught:
        load_reference(source, small=True, name="p")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("source", "method", "message"),
    [
        (minimal(inputs="torch.ones(2)"), "inputs", "p: get_inputs returned Tensor; return a list of forward's arguments"),
        (
            minimal(inputs="[object()]"),
            "inputs",
            "p: get_inputs returned a object; use tensors, Python scalars, or lists of these",
        ),
        (minimal(inputs="[missing]"), "inputs", "p: get_inputs raised NameError on line 10: name 'missing' is not defined"),
        (minimal(init="3"), "model", "p: get_init_inputs returned int; return a list of Model's arguments"),
        (minimal(init="[1]"), "model", "p: Model(*get_init_inputs()) raised TypeError: Model.__init__() takes 1 positional"),
        (minimal() + "Model = dict\n", "model", "p: Model is not a torch.nn.Module; derive it from nn.Module"),
    ],
)
def test_broken_functions_are_one_clear_line(source: str, method: str, message: str) -> None:
    reference = load_reference(source, small=False, name="p")
    with pytest.raises(BrokenReference) as caught:
        getattr(reference, method)(0)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_pattern_of_fixed_matches_a_parameter() -> None:
    names = ["norm.weight", "norm.bias"]
    for patterns in ('("norm.weight",)', '("*.bias", "*")', "()"):
        load_reference(minimal() + f"FIXED = {patterns}\n", small=False).check_fixed(names)
    load_reference(minimal() + 'FIXED = ("*",)\n', small=False).check_fixed([])
    reference = load_reference(minimal() + 'FIXED = ("*.bias", "nope")\n', small=False, name="p")
    with pytest.raises(BrokenReference) as caught:
        reference.check_fixed(names)
    wanted = "p: FIXED names nope, but Model has no such parameter or buffer; it has norm.weight, norm.bias"
    assert str(caught.value) == wanted


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_without_a_gpu_cuda_means_the_cpu() -> None:
    source = """
import torch
class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size, device="cuda:0"))
        self.cuda()
    def forward(self, x):
        return x * self.weight
def get_inputs():
    drawn, zeros = torch.randn(4, device="cuda"), torch.zeros(4).to(torch.device("cuda"))
    return [drawn, torch.rand(4).cuda(), zeros, torch.ones(2).to("cuda:0", torch.half)]
def get_init_inputs():
    return [4]
"""
    reference = load_reference(source, small=False)
    assert [x.device.type for x in [*reference.inputs(0), reference.model(0).weight]] == ["cpu"] * 5
    assert reference.inputs(0)[3].dtype == torch.half
    assert torch.equal(reference.inputs(0)[0], reference.inputs(0)[0]) and not torch.equal(
        reference.inputs(0)[0], reference.inputs(1)[0]
    )


def test_an_exit_of_the_file_is_told_like_any_other_failure() -> None:
    with pytest.raises(BrokenReference, match=r"^p: importing it raised SystemExit on line 2: 0$"):
        load_reference("import sys\nsys.exit(0)\n" + minimal(), small=False, name="p")


def test_an_import_without_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "IMPORT_SECONDS", 0.2)
    endless = "import torch\ntry:\n    while True: pass\nexcept Exception: pass\n"
    with pytest.raises(BrokenReference, match=r"^p: importing it took more than 0.2 s of processor time on line 3; compute in"):
        load_reference(endless + minimal(), small=False, name="p")


def test_a_dataclass_may_have_annotations_that_are_read_later() -> None:
    before = sys.modules.get("reference")
    text = """
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar
import torch

@dataclass
class Config:
    kinds: ClassVar[int] = 3
    heads: int = 8

class Model(torch.nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.heads = config.heads
    def forward(self, x):
        return x * self.heads
def get_inputs():
    return [torch.ones(4)]
def get_init_inputs():
    return [Config()]
"""
    reference = load_reference(text, small=False)
    assert reference.model(0)(*reference.inputs(0)).tolist() == [8.0] * 4
    assert sys.modules.get("reference") is before
    load_reference("import sys\nsys.modules.pop(__name__)\n" + minimal(), small=False)
    assert sys.modules.get("reference") is before
