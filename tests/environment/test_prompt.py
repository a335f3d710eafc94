"""The prompt's golden text, and what both styles must contain."""

from __future__ import annotations

import pytest

from envs.problems import load_suite
from rlkernel.environment.extract import fenced_blocks
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.reference_text import prompt_source
from rlkernel.types import Problem

RELU = Problem(
    "level1/relu",
    1,
    "train",
    '"""ReLU."""\nimport torch\n\nN = 4096\nSMALL = {"N": 8}\n\n'
    "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x.relu()\n",
)


def test_short_prompt() -> None:
    assert KernelEnvironment().prompt(RELU) == (
        "Rewrite this Model as ModelNew with Triton kernels.\n"
        "```python\n"
        "import torch\n"
        "\n"
        "N = 4096\n"
        "\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x.relu()\n"
        "```\n"
        "Write a short plan, then one fenced python block.\n"
    )


def test_full_prompt_names_the_interface_and_the_rules() -> None:
    text = KernelEnvironment("full").prompt(RELU)
    assert prompt_source(RELU.source) in text
    for needed in (
        "ModelNew",
        "exactly one fenced python block",
        "same names and in the same order",
        ".item()",
        "coverage",
        "in place",
    ):
        assert needed in text
    assert "SMALL" not in text and "{reference}" not in text


@pytest.mark.parametrize("style", ["short", "full"])
def test_the_reference_is_the_only_block_whatever_it_contains(style: str) -> None:
    source = 'class Model:\n    doc = """\n```\n````\n"""\n    braces = "{reference}"\n'
    text = KernelEnvironment(style).prompt(Problem("p", 1, "train", source))  # type: ignore[arg-type]
    assert [block.code for block in fenced_blocks(text)] == [source.rstrip("\n")]


def test_short_prompts_fit_a_small_context() -> None:
    environment = KernelEnvironment()
    assert max(len(environment.prompt(problem)) for problem in load_suite()) <= 1500
