"""Sizes that have no name of their own: in configurations, in the defaults of a file's classes and of its two functions."""

from __future__ import annotations

import ast

import pytest

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.costs.needs import need
from rlkernel.evaluator.judging.sizes.constants import resize, sizes_of
from rlkernel.evaluator.judging.sizes.fitting import Fitted, fit_for_cpu
from rlkernel.evaluator.judging.sizes.hoisting import hoisted
from rlkernel.types import Problem

BODY = """
class Model(torch.nn.Module):
    def __init__(self, config=None, patch=16):
        super().__init__()
        self.patch = patch
    def forward(self, x):
        return torch.relu(x) * 2 + self.patch
"""
READ = "ROWS = (CONFIG.rows, CONFIG.columns)"
CONFIGURED = {
    "dict": "CONFIG = {'data': {'rows': 4096, 'columns': 2048}, 'kernel_size': 64}\n"
    "ROWS = (CONFIG['data']['rows'], CONFIG['data']['columns'])",
    "call": "class Config:\n    def __init__(self, rows, columns): self.rows, self.columns = rows, columns\n"
    f"CONFIG = Config(4096, columns=2048)\n{READ}",
    "class": "from dataclasses import dataclass\n@dataclass\nclass Config:\n    rows: int = 4096\n    columns: int = 2048\n"
    f"CONFIG = Config()\n{READ}",
}


def file_of(constants: str, inputs: str = "def get_inputs():\n    return [torch.rand(*ROWS)]\n") -> str:
    return f"import torch\n{constants}\n{BODY}\n{inputs}"


@pytest.mark.parametrize("how", sorted(CONFIGURED))
def test_sizes_in_configurations_are_made_smaller(how: str) -> None:
    source = file_of(CONFIGURED[how])
    found = hoisted(source)
    assert sizes_of(found)["SIZE_4096"] == 4096 and sizes_of(found)["SIZE_2048"] == 2048 and "SIZE_64" not in found
    assert "SIZE_16" not in found, "the default of a module is the candidate's, too"
    assert need(resize(found, {"SIZE_4096": 8, "SIZE_2048": 4}), "p", H200).inputs == 32
    fitted = fit_for_cpu(Problem("p", 0, "train", source), H200)
    assert isinstance(fitted, Fitted) and fitted.compared.keys() == {"SIZE_4096", "SIZE_2048"}


def test_the_defaults_of_get_inputs_are_sizes() -> None:
    source = file_of("", "def get_inputs(rows=4096, *, columns=2048):\n    return [torch.rand(rows, columns)]\n")
    assert need(resize(hoisted(source), {"SIZE_4096": 8, "SIZE_2048": 4}), "p", H200).inputs == 32


def test_lines_keep_their_numbers() -> None:
    source = file_of(CONFIGURED["dict"])
    lines = [[one.lineno for one in ast.parse(text).body if isinstance(one, ast.ClassDef)] for text in (source, hoisted(source))]
    assert lines[0] == lines[1]
    with pytest.raises(BrokenReference, match="on line 3"):
        need(hoisted(source.replace("ROWS = (CONFIG['data']", "ROWS = (CONFIG['date']")), "p", H200)


def test_a_file_that_begins_with_a_class_or_a_future_import_can_be_hoisted() -> None:
    for first in ('"""Words."""\nfrom __future__ import annotations\n', "class Other: pass\n", "@str\nclass Other: pass\n"):
        found = hoisted(first + file_of(CONFIGURED["dict"]))
        assert compile(found, "p", "exec") and "SIZE_4096 = 4096" in found


def test_the_least_that_was_found_one_by_one_is_taken() -> None:
    """Of an image whose sides are the module's, the batch alone can be smaller; nothing is comfortable then, and it is less."""
    text = """
class Model(torch.nn.Module):
    def __init__(self, side=512):
        super().__init__()
        self.place = torch.nn.Parameter(torch.rand(side, side))
    def forward(self, x):
        return torch.relu(x + self.place) * 2
def get_inputs():
    return [torch.rand(16, 512, 512)]
"""
    fitted = fit_for_cpu(Problem("p", 0, "train", f"import torch\n{text}"), H200)
    assert isinstance(fitted, Fitted) and fitted.compared == {"SIZE_16": 1}
