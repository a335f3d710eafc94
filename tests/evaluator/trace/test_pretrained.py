"""References that load a model by name, as KernelBench's level 4 does, from a folder that stands for the hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoConfig, AutoModelForCausalLM

from rlkernel.evaluator.judging.references.arguments import spec
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.trace.pretrained import decode_config
from rlkernel.types import Problem, Status

SIZES = {"n_layer": 1, "n_embd": 32, "n_head": 2, "vocab_size": 64, "n_positions": 64, "bos_token_id": 1, "eos_token_id": 1}
SOURCE = """
import torch
from transformers import AutoConfig, AutoModelForCausalLM

class {name}(torch.nn.Module):
    def __init__(self, model_name, config):
        super().__init__()
        self.model = AutoModelForCausalLM.from_pretrained(model_name, config=config)

    def forward(self, x):
        return self.model(x).logits

model_name = {folder!r}
config = AutoConfig.from_pretrained(model_name)
batch_size, sequence_length = 4, 32

def get_inputs():
    return [torch.randint(0, config.vocab_size, (batch_size, sequence_length))]

def get_init_inputs():
    return [model_name, config]
"""


def test_a_configuration_comes_back_from_its_specification() -> None:
    config = AutoConfig.for_model("gpt2", **SIZES)
    made = decode_config(spec(config))
    assert type(made) is type(config)
    assert made.to_dict() == config.to_dict()


@pytest.mark.anyio
async def test_a_model_by_name_is_judged_without_its_files(pool: Pool, tmp_path: Path) -> None:
    """The candidate's process may not read the folder, so that `from_pretrained` there makes the model of the configuration."""
    AutoModelForCausalLM.from_config(AutoConfig.for_model("gpt2", **SIZES)).save_pretrained(tmp_path)
    problem = Problem("gpt2", 4, "validation", SOURCE.format(name="Model", folder=str(tmp_path)))
    result = await pool.evaluate(problem, SOURCE.format(name="ModelNew", folder=str(tmp_path)))
    assert result.status is Status.NO_KERNEL, result.detail
    assert result.matches
