"""Rows are what a rollout would have made of the same turns, under the real chat template of Qwen3, as TRL ships it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trl
from tokenizers import AddedToken
from trl.chat_template_utils import get_training_chat_template

from experiments.tuning.conversations import Conversation
from experiments.tuning.rows import IGNORED, token_row, token_rows
from rlkernel.errors import UsageError
from rlkernel.policy.chat import encode_feedback, encode_prompt
from rlkernel.policy.small import build_tokenizer

TEMPLATES = Path(trl.__file__).parent / "chat_templates"
THOUGHTS = Conversation(
    (("Write it.", "<think>\nHm.\n</think>\n\nx = 1"), ("Faster.", "<think>\nSo.\n</think>\n\nx = 2\n"))
)  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    made = build_tokenizer(["user assistant system think Write it. Faster, please. x = 1"], 400, 512)
    made.add_special_tokens({"eos_token": "<|im_end|>", "additional_special_tokens": ["<|im_start|>"]})
    made.add_tokens([AddedToken("<think>", special=False), AddedToken("</think>", special=False)])
    made.chat_template = (TEMPLATES / "qwen3.jinja").read_text(encoding="utf-8")
    return made


def trained(tokenizer: Any, row: Any) -> str:
    return str(tokenizer.decode([token for token in row.labels if token != IGNORED]))


def test_the_answers_alone_are_trained_thoughts_and_ends_included(tokenizer: Any) -> None:
    row = token_row(tokenizer, THOUGHTS, 512)
    assert row is not None and not row.shortened
    assert trained(tokenizer, row) == (
        "<think>\nHm.\n</think>\n\nx = 1<|im_end|><think>\nSo.\n</think>\n\nx = 2\n<|im_end|>"
    )  # fmt: skip
    assert all(label in (IGNORED, token) for token, label in zip(row.input_ids, row.labels, strict=True))


def test_a_row_is_the_tokens_of_a_rollout(tokenizer: Any) -> None:
    row = token_row(tokenizer, THOUGHTS, 512)
    assert row is not None
    sampled = [tokenizer.encode(f"{answer}<|im_end|>", add_special_tokens=False) for _, answer in THOUGHTS.exchanges]
    rollout = [*encode_prompt(tokenizer, "Write it."), *sampled[0], *encode_feedback(tokenizer, "Faster."), *sampled[1]]
    assert row.input_ids.tolist() == rollout


def test_trls_own_masks_are_the_same_up_to_line_ends_where_every_answer_has_a_thought(tokenizer: Any) -> None:
    messages = [
        message
        for told, answer in THOUGHTS.exchanges
        for message in ({"role": "user", "content": told}, {"role": "assistant", "content": answer})
    ]
    template = get_training_chat_template(tokenizer)
    theirs = tokenizer.apply_chat_template(
        messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True, chat_template=template
    )
    row = token_row(tokenizer, THOUGHTS, 512)
    assert row is not None
    ours, length = row.input_ids.tolist(), len(row.input_ids)
    # Theirs ends with the line end after the last <|im_end|>, which nobody samples, and trains that of every turn.
    assert theirs["input_ids"] == [*ours, *tokenizer.encode("\n")]
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    line_ends = [k for k in range(1, length) if ours[k - 1] == end and theirs["assistant_masks"][k]]
    assert len(line_ends) == 1  # after the first answer
    mask = [int(label != IGNORED) for label in row.labels]
    assert [k for k in range(length) if mask[k] != theirs["assistant_masks"][k]] == line_ends


def test_an_answer_without_a_thought_gets_none(tokenizer: Any) -> None:
    row = token_row(tokenizer, Conversation((("Write it.", "x = 1"),)), 512)
    assert trained(tokenizer, row) == "x = 1<|im_end|>"


def test_a_template_that_trl_does_not_know_will_do(tokenizer: Any) -> None:
    other = build_tokenizer(["x = 1"], 400, 512)
    other.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant: {% endif %}"
    )
    with pytest.raises(ValueError, match="not training-compatible"):
        get_training_chat_template(other)
    row = token_row(other, Conversation((("a", "x = 1"), ("b", "x = 2"))), 512)
    assert row is not None and trained(other, row) == "x = 1<|im_end|>x = 2<|im_end|>"
    assert other.decode(row.input_ids) == (
        "<|im_start|>user: a<|im_end|><|im_start|>assistant: x = 1<|im_end|>"
        "<|im_start|>user: b<|im_end|><|im_start|>assistant: x = 2<|im_end|>"
    )


def test_special_tokens_in_texts_do_not_act(tokenizer: Any) -> None:
    row = token_row(tokenizer, Conversation((("a<|im_end|>b", "x = 1<|im_end|>\n<|im_start|>user\nx = 2"),)), 512)
    assert row is not None and trained(tokenizer, row) == "x = 1<|im_end|>"
    assert list(row.input_ids).count(tokenizer.convert_tokens_to_ids("<|im_end|>")) == 2  # the user's, and the answer's


def test_what_has_no_room_is_left_out_from_the_end(tokenizer: Any) -> None:
    whole = token_row(tokenizer, THOUGHTS, 512)
    first = token_row(tokenizer, Conversation(THOUGHTS.exchanges[:1]), 512)
    assert whole is not None and first is not None
    cut = token_row(tokenizer, THOUGHTS, len(whole.input_ids) - 1)
    assert cut is not None and cut.shortened and cut.input_ids.tolist() == first.input_ids.tolist()
    assert token_row(tokenizer, THOUGHTS, len(first.input_ids) - 1) is None
    rows = token_rows(tokenizer, [THOUGHTS, Conversation((("Faster, " * 200, "x"),))], len(first.input_ids))
    assert (len(rows.rows), rows.shortened, rows.without_room) == (1, 1, 1)
    assert rows.line().endswith("1 rows end early for want of room; 1 conversations have no room for an answer")
    assert rows.digest != token_rows(tokenizer, [THOUGHTS], 512).digest
    with pytest.raises(UsageError, match="no answer of the table fits into 3 tokens: raise --length"):
        token_rows(tokenizer, [THOUGHTS], 3)
