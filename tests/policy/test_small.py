from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.chains import chain_problem, generate, parse
from envs.problems import load_suite
from envs.teacher.drafts import completion, fused_draft
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.policy.chat import encode_prompt
from rlkernel.policy.engine import Request
from rlkernel.policy.slots.engine import SlotEngine
from rlkernel.policy.small import SMALL, build_model, build_tokenizer, load_small, save_small


@pytest.fixture(scope="module")
def small() -> tuple[Any, Any]:
    return load_small()


def test_the_shipped_policy_is_small_and_loads_in_float32(small: tuple[Any, Any]) -> None:
    model, tokenizer = small
    assert sum(path.stat().st_size for path in SMALL.iterdir()) < 4_000_000
    assert 800_000 < sum(parameter.numel() for parameter in model.parameters()) < 1_600_000
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert model.config.model_type == "qwen3"
    assert model.config.eos_token_id == tokenizer.eos_token_id == tokenizer.convert_tokens_to_ids("<|im_end|>")


def test_every_digit_is_a_token(small: tuple[Any, Any]) -> None:
    tokenizer = small[1]
    assert [tokenizer.decode([i]) for i in tokenizer.encode("8192.75")] == list("8192.75")
    assert not [token for token in tokenizer.get_vocab() if re.search(r"\d.|.\d", token)]


@settings(max_examples=60)
@given(text=st.text())
def test_any_text_round_trips(small: tuple[Any, Any], text: str) -> None:
    tokenizer = small[1]
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def test_prompts_and_answers_are_short(small: tuple[Any, Any]) -> None:
    tokenizer = small[1]
    for problem in generate(50, seed=99):
        assert len(encode_prompt(tokenizer, KernelEnvironment().prompt(problem))) < 120
        assert len(tokenizer.encode(completion(fused_draft(problem.source)))) < 200


def test_the_shipped_policy_writes_modules_for_unseen_chains(small: tuple[Any, Any]) -> None:
    """Most of 32 samples for validation chains at temperature 1 hold a module that parses, and some are the right fusion."""
    model, tokenizer = small
    chains = [p for p in load_suite() if p.split == "validation" and parse(p.source)][:8]
    environment = KernelEnvironment()
    requests = [
        Request(4 * i + k, encode_prompt(tokenizer, environment.prompt(problem)), seed=4 * i + k, budget=256)
        for i, problem in enumerate(chains)
        for k in range(4)
    ]
    samples = SlotEngine(model, frozenset({tokenizer.eos_token_id}), 1.0).advance(requests, 256)
    texts = {s.key: tokenizer.decode(list(s.token_ids), skip_special_tokens=True) for s in samples}
    assert len(texts) == 4 * len(chains)
    assert sum(environment.extract(text) is not None for text in texts.values()) >= 0.8 * len(texts)
    right = [completion(fused_draft(problem.source)) for problem in chains]
    assert sum(texts[4 * i + k] == right[i] for i in range(len(chains)) for k in range(4)) >= 1


@pytest.mark.parametrize("shard", ["15MB", "20KB"])
def test_weights_survive_saving_up_to_half_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: str) -> None:
    tokenizer = build_tokenizer([chain_problem(parse(p.source) or ()).source for p in generate(5, seed=0)], vocabulary=400)
    model = build_model(tokenizer, seed=3, width=32, layers=1, heads=2, feed_forward=48)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    monkeypatch.setattr("rlkernel.policy.small.SHARD", shard)
    save_small(model, tokenizer, tmp_path)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) is (shard == "20KB")
    loaded, same = load_small(tmp_path)
    assert same.get_vocab() == tokenizer.get_vocab()
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(tensor, before[name].half().float())
        assert torch.equal(model.state_dict()[name], before[name])


def test_models_are_drawn_from_their_seed(tiny_tokenizer: Any) -> None:
    one, two, other = (build_model(tiny_tokenizer, seed=seed, width=32, layers=1, heads=2).lm_head.weight for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_missing_weights_name_the_command_that_makes_them(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"python -m experiments\.cold_start"):
        load_small(tmp_path)


def test_the_shipped_policy_is_read_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    transformers.utils.logging.enable_progress_bar()
    load_small()
    assert capfd.readouterr().err == ""
