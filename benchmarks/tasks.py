"""Tasks made by program: the same task in two sets of clothes, and different tasks. Nothing is copied from any data set.

A task is a sequence of steps. `plain` writes it with modules of torch.nn, `disguised` with functions and methods, other names,
constants and sizes, work in place, and the definitions in another order.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from rlkernel.types import Problem, Split


@dataclass(frozen=True)
class Step:
    """One step in both clothes. In its texts, {x} is what comes in, {k} the step's number, {n} the columns, {c} a constant."""

    made: str
    """What `plain` has in the constructor; empty for none."""
    called: str
    disguised_made: str
    disguised_called: str


def _pointwise(module: str, function: str) -> Step:
    return Step(f"self.m{{k}} = nn.{module}", "self.m{k}({x})", "", function)


ROWS: Mapping[str, Step] = {
    "linear": Step(
        "self.m{k} = nn.Linear({n}, {n})",
        "self.m{k}({x})",
        "self.w{k} = nn.Parameter(t.randn({n}, {n})); self.v{k} = nn.Parameter(t.randn({n}))",
        "f.linear({x}, self.w{k}, self.v{k})",
    ),
    "layer_norm": Step(
        "self.m{k} = nn.LayerNorm({n})",
        "self.m{k}({x})",
        "self.w{k} = nn.Parameter(t.ones({n})); self.v{k} = nn.Parameter(t.zeros({n}))",
        "f.layer_norm({x}, ({n},), self.w{k}, self.v{k})",
    ),
    "bias": Step(
        "self.m{k} = nn.Parameter(torch.randn({n}))",
        "{x} + self.m{k}",
        "self.w{k} = nn.Parameter(t.randn({n}))",
        "t.add({x}, self.w{k})",
    ),
    "relu": _pointwise("ReLU()", "{x}.relu()"),
    "gelu": _pointwise("GELU()", "f.gelu({x})"),
    "silu": _pointwise("SiLU()", "f.silu({x})"),
    "mish": _pointwise("Mish()", "f.mish({x})"),
    "tanh": _pointwise("Tanh()", "{x}.tanh()"),
    "sigmoid": _pointwise("Sigmoid()", "{x}.sigmoid()"),
    "leaky": _pointwise("LeakyReLU({c})", "f.leaky_relu({x}, {c})"),
    "softplus": _pointwise("Softplus()", "f.softplus({x})"),
    "softmax": _pointwise("Softmax(dim=-1)", "{x}.softmax(1)"),
    "scale": Step("", "{x} * {c}", "", "{x}.mul({c})"),
    "shift": Step("", "{x} + {c}", "", "{x}.add({c})"),
    "clamp": Step("", "torch.clamp({x}, min=-{c}, max={c})", "", "{x}.clamp(-{c}, {c})"),
    "square": Step("", "{x} ** 2", "", "{x}.pow(2)"),
    "abs": Step("", "torch.abs({x})", "", "{x}.abs()"),
    "residual": Step("", "{x} + x", "", "{x}.add(x)"),
    "center": Step("", "{x} - {x}.mean(dim=-1, keepdim=True)", "", "{x}.sub(t.mean({x}, -1, True))"),
    "cumsum": Step("", "torch.cumsum({x}, dim=1)", "", "{x}.cumsum(-1)"),
}
"""Steps on (rows, columns)."""
IMAGES: Mapping[str, Step] = {
    "conv": Step(
        "self.m{k} = nn.Conv2d(4, 4, 3, padding=1)",
        "self.m{k}({x})",
        "self.w{k} = nn.Parameter(t.randn(4, 4, 5, 5)); self.v{k} = nn.Parameter(t.randn(4))",
        "f.conv2d({x}, self.w{k}, self.v{k}, padding=2)",
    ),
    "depthwise": Step(
        "self.m{k} = nn.Conv2d(4, 4, 3, padding=1, groups=4)",
        "self.m{k}({x})",
        "self.w{k} = nn.Parameter(t.randn(4, 1, 5, 5)); self.v{k} = nn.Parameter(t.randn(4))",
        "f.conv2d({x}, self.w{k}, self.v{k}, padding=2, groups=4)",
    ),
    "max_pool": Step("self.m{k} = nn.MaxPool2d(3, 1, 1)", "self.m{k}({x})", "", "f.max_pool2d({x}, 5, 1, 2)"),
    "avg_pool": Step("self.m{k} = nn.AvgPool2d(3, 1, 1)", "self.m{k}({x})", "", "f.avg_pool2d({x}, 5, 1, 2)"),
    "group_norm": Step(
        "self.m{k} = nn.GroupNorm(2, 4)",
        "self.m{k}({x})",
        "self.w{k} = nn.Parameter(t.ones(4)); self.v{k} = nn.Parameter(t.zeros(4))",
        "f.group_norm({x}, 4, self.w{k}, self.v{k})",
    ),
    **{name: ROWS[name] for name in ("relu", "gelu", "tanh", "sigmoid", "scale", "shift", "clamp", "residual", "leaky")},
}
"""Steps on (batch, 4 channels, height, width)."""
Task = tuple[str, ...]


def tasks(count: int, seed: int, without: frozenset[Task] = frozenset()) -> list[Task]:
    """Different tasks of two to six steps, none of `without`."""
    rng = random.Random(seed)
    found: dict[Task, None] = {}
    while len(found) < count:
        steps = list(ROWS if rng.random() < 0.6 else IMAGES)
        task = tuple(rng.choice(steps) for _ in range(rng.randint(2, 6)))
        # A name that both tables have means one step: images begin with one of their own, rows without.
        task = ("conv", *task) if steps == list(IMAGES) and not _of_images(task) else task
        if task not in without:
            found[task] = None
    return list(found)


def singles() -> list[Task]:
    """Every step alone."""
    return [(name,) for name in (*ROWS, *(name for name in IMAGES if name not in ROWS))]


def _of_images(task: Task) -> bool:
    return any(name not in ROWS for name in task)


def plain(task: Task, split: Split = "train") -> Problem:
    """The task with modules."""
    body, made = _written(task, disguised=False)
    inputs = "torch.randn(batch, 4, 8, 8)" if _of_images(task) else "torch.randn(batch, columns)"
    source = (
        "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"{made}\n    def forward(self, x):\n{body}\n\nbatch = 16\ncolumns = 64\n\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    return Problem("plain/" + "-".join(task), 1, split, source)


def disguised(task: Task) -> Problem:
    """The task in other clothes."""
    body, made = _written(task, disguised=True)
    inputs = "t.randn(3, 4, 12, 12)" if _of_images(task) else "t.randn(7, 96)"
    source = (
        "import torch as t\nfrom torch import nn\nfrom torch.nn import functional as f\n\n\n"
        "def get_init_inputs(): return [[], {}]\n"
        f"def get_inputs():\n    first = {inputs}\n    return [first]\n\n\nclass Model(t.nn.Module):\n    '''Another one.'''\n\n"
        f"    def __init__(self):\n        super(Model, self).__init__()\n{made}\n    def forward(self, x):\n{body}"
    )
    return Problem("disguised/" + "-".join(task), 1, "train", source)


def _written(task: Task, *, disguised: bool) -> tuple[str, str]:
    """The body of forward, and that of the constructor."""
    table = IMAGES if _of_images(task) else ROWS
    name, body, made = "x", "", ""
    for k, step in enumerate(task):
        words = {"k": k, "n": 96 if disguised else 64, "c": 0.25 + k if disguised else 0.5 + k, "x": name}
        one = table[step]
        constructor = (one.disguised_made if disguised else one.made).format(**words)
        made += "".join(f"        {line.strip()}\n" for line in constructor.split(";") if line.strip())
        new = f"{'after' if disguised else 'y'}{k}"
        body += f"        {new} = {(one.disguised_called if disguised else one.called).format(**words)}\n"
        name = new
    return body + f"        return {name}\n", made
