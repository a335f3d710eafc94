"""Writes the turns of a conversation as token ids, which are only ever appended: what the policy sampled is never tokenised
again.

    tokens of a trajectory = encode_prompt(problem) + completion + encode_feedback(...) + completion + ...

The strings around the texts come from the tokenizer's own chat template, rendered once on placeholders, so that any Hugging
Face chat tokenizer works. Each completion ends with the end-of-turn token that the policy sampled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_USER, _ANSWER, _NEXT = "FIRSTUSERTEXT", "ASSISTANTTEXT", "SECONDUSERTEXT"


def encode_prompt(tokenizer: Any, text: str) -> tuple[int, ...]:
    """The tokens of the first user message, up to where the assistant starts to write. Raises ValueError for an unusable chat
    template."""
    before, after = _around_prompt(tokenizer)
    return _encode(tokenizer, before, text, after)


def encode_feedback(tokenizer: Any, text: str, *, truncated: bool = False) -> tuple[int, ...]:
    """The tokens that follow a completion: the rest of the assistant's turn, the next user message, and the start of the next
    answer.

    truncated: the completion ran into its length limit and has no end-of-turn token, so it is put here.
    Raises ValueError for an unusable chat template.
    """
    before, after = _around_feedback(tokenizer)
    end = end_of_turn(tokenizer)
    rest = before.removeprefix(end)
    return _encode(tokenizer, (end if truncated else "") + rest, text, after)


def end_of_turn(tokenizer: Any) -> str:
    """The token that ends an answer: what the chat template puts after one, else the tokenizer's end of sequence.

    They differ where a template came after pretraining: Qwen3's base models end texts with <|endoftext|>, and their template ends
    turns with <|im_end|>. Raises ValueError where there is neither.
    """
    token = tokenizer.eos_token
    between = _around_feedback(tokenizer)[0] if tokenizer.chat_template else ""
    first = next((one for one in _special(tokenizer) if between.startswith(one)), None)
    # A token that stands alone between answer and user opens the user's turn.
    if first not in (None, token) and any(one in between.removeprefix(first) for one in _special(tokenizer)):
        return first
    if not isinstance(token, str) or not token:
        raise ValueError("the tokenizer has no eos_token; set the token that ends an assistant turn")
    return token


def _encode(tokenizer: Any, before: str, text: str, after: str) -> tuple[int, ...]:
    return tuple(tokenizer.encode(before + _defuse(tokenizer, text) + after, add_special_tokens=False))


def _defuse(tokenizer: Any, text: str) -> str:
    """Break up special tokens that a text spells out, so that they do not act as such: a candidate's error message may hold
    some."""
    for token in _special(tokenizer):
        text = text.replace(token, token[0] + " " + token[1:])
    return text


@lru_cache(maxsize=8)
def _special(tokenizer: Any) -> tuple[str, ...]:
    return tuple(token.content for token in tokenizer.added_tokens_decoder.values() if token.special and len(token.content) > 1)


@lru_cache(maxsize=8)
def _around_prompt(tokenizer: Any) -> tuple[str, str]:
    rendered = _render(tokenizer, [{"role": "user", "content": _USER}])
    before, found, after = rendered.partition(_USER)
    if not found:
        raise ValueError("the tokenizer's chat template does not render the user's text")
    return before, after


@lru_cache(maxsize=8)
def _around_feedback(tokenizer: Any) -> tuple[str, str]:
    rendered = _render(
        tokenizer,
        [
            {"role": "user", "content": _USER},
            {"role": "assistant", "content": _ANSWER},
            {"role": "user", "content": _NEXT},
        ],
    )
    _, answered, rest = rendered.rpartition(_ANSWER)
    before, found, after = rest.partition(_NEXT)
    if not answered or not found:
        raise ValueError("the tokenizer's chat template does not render an assistant turn followed by a user turn")
    return before, after


def _render(tokenizer: Any, messages: list[dict[str, str]]) -> str:
    if not tokenizer.chat_template:
        raise ValueError("the tokenizer has no chat template; use an instruction-tuned model or set tokenizer.chat_template")
    text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return text
