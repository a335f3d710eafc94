"""What all tests share: a random model and a small tokenizer, made in memory; which tests are slow; what was not run and why."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "disabled")

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy is not a bug, so no property has a deadline. What a change must pass tries the same examples each time;
# whoever runs tests while editing tries others.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("any machine")

STARTERS = {"subprocess", "chromium", "forked", "open_native", "open_pool", "open_ray_pool", "ForkServer", "train"}
"""Names of what starts processes or trains: the tests of a file that imports one of them are slow. Where a test
starts them through something else, it has the mark `slow`."""
POOLS = {"pool", "hasty_pool"}
"""Fixtures that hold an open evaluator: the tests that ask for one are slow."""
DESELECTED = {"gpu": "GPU tests (make test-gpu on an NVIDIA GPU)", "slow": "slow tests (make test)"}
"""A marker by which tests are left out, and what is said of them."""

not_run: Counter[str] = Counter()
"""Why tests were left out -> how many. A reason names the kind of test and what would run it."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow tests, and deal the files to xdist's workers so that each has its slow ones first and its quick ones last."""
    ranks: dict[str, int] = {}
    for item in items:
        file = item.nodeid.partition("::")[0]
        fixtures = set(getattr(item, "fixturenames", ()))
        starts = bool(STARTERS & vars(getattr(item, "module", None) or object).keys())
        if starts or fixtures & POOLS:
            item.add_marker("slow")
        rank = 0 if starts else 1 if item.get_closest_marker("slow") else 2
        ranks[file] = min(rank, ranks.get(file, rank))
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    # Every worker starts with an equal part of the list and takes over from the others' ends.
    dealt = {file: i % workers for i, file in enumerate(sorted(ranks, key=lambda file: ranks[file]))}
    places = {file: (dealt[file], ranks[file]) for file in ranks}
    items.sort(key=lambda item: places[item.nodeid.partition("::")[0]])


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        marker = next((marker for marker in DESELECTED if item.get_closest_marker(marker)), None)
        if marker is not None:
            not_run[DESELECTED[marker]] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["not_run"] = dict(not_run)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker of xdist selects among all tests, so they have the same to tell."""
    not_run.update(Counter(getattr(node, "workeroutput", {}).get("not_run", {})) - not_run)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The last line says what was not run; pytest's own closing line comes before it."""
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ()))
    told = ", ".join(f"{count} {reason}" for reason, count in (reasons + not_run).most_common())
    if told:
        config.add_cleanup(lambda: terminalreporter.write_line(f"not run: {told}"))


CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Any:
    """Byte-level, at most 300 tokens, ChatML."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        ["def kernel(x): return x + 1\n"] * 8,
        trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHATML
    )


@pytest.fixture
def tiny_model(tiny_tokenizer: Any) -> Any:
    """A random Qwen3 of 2 layers, the same for every test, float32 on the CPU."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tiny_tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=128,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        pad_token_id=tiny_tokenizer.pad_token_id,
        eos_token_id=tiny_tokenizer.eos_token_id,
    )
    return Qwen3ForCausalLM(config).eval()
