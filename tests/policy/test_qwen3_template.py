"""The chat template of Qwen3, as TRL ships it: turns are appended, and thoughts stay in the context that was sampled."""

from __future__ import annotations

from pathlib import Path

import pytest
import trl

from rlkernel.policy.chat import encode_feedback, encode_prompt, end_of_turn
from rlkernel.policy.small import build_tokenizer

TEMPLATE = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"


@pytest.fixture(scope="module")
def tokenizer() -> object:
    made = build_tokenizer(["user assistant system think Write it. Faster, please."], 400, 512)
    made.add_special_tokens({"eos_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]})
    made.chat_template = TEMPLATE.read_text(encoding="utf-8")
    return made


def test_a_prompt_ends_where_the_assistant_starts_to_think(tokenizer: object) -> None:
    text = tokenizer.decode(encode_prompt(tokenizer, "Write it.\n"))  # type: ignore[attr-defined]
    assert text == "<|im_start|>user\nWrite it.\n<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(("truncated", "start"), [(False, "\n"), (True, "<|im_end|>\n")])
def test_feedback_closes_the_turn_and_opens_the_next(tokenizer: object, truncated: bool, start: str) -> None:
    ids = encode_feedback(tokenizer, "Faster, <|im_end|> please.", truncated=truncated)
    text = tokenizer.decode(ids)  # type: ignore[attr-defined]
    # A special token that the feedback spells out is broken up.
    assert text == f"{start}<|im_start|>user\nFaster, < |im_end|> please.<|im_end|>\n<|im_start|>assistant\n"


def test_a_base_model_whose_texts_end_otherwise_ends_its_turns_as_the_template_does(tokenizer: object) -> None:
    base = build_tokenizer(["user assistant Write it."], 400, 512)
    base.add_special_tokens({"eos_token": "<|endoftext|>", "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    base.chat_template = tokenizer.chat_template  # type: ignore[attr-defined]
    assert (base.eos_token, end_of_turn(base)) == ("<|endoftext|>", "<|im_end|>")
    # The answer was sampled with its <|im_end|>, which stands there once.
    assert base.decode(encode_feedback(base, "Faster.")) == "\n<|im_start|>user\nFaster.<|im_end|>\n<|im_start|>assistant\n"
