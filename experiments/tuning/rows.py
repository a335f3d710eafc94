"""Conversations as rows of tokens, of which the answers are trained.

A row is put together as a rollout puts it together (`rlkernel.policy.chat`): a prompt, an answer, feedback, an answer, ... So the
policy is trained on the very contexts that it meets later. TRL's own way is a copy of the chat template with `{% generation %}`
around answers, which it has for templates that it knows byte by byte; Qwen3's copy writes an empty thought into each answer
without one, which a rollout does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.tuning.conversations import Conversation
from rlkernel.errors import UsageError
from rlkernel.policy.chat import encode_feedback, encode_prompt, end_of_turn

IGNORED = -100
"""The label of a token that is not trained."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenRow:
    """A conversation in tokens. Both arrays are int32 of one length."""

    input_ids: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    """The tokens of answers, with the one that ends each; `IGNORED` elsewhere."""
    shortened: bool
    """Whether later turns were left out, since they had no room."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The rows of a table."""

    rows: tuple[TokenRow, ...]
    shortened: int
    """Conversations whose later turns had no room."""
    without_room: int
    """Conversations whose first answer had no room."""

    @property
    def digest(self) -> str:
        """16 hex digits of all rows."""
        digest = hashlib.sha256()
        for row in self.rows:
            digest.update(len(row.input_ids).to_bytes(8, "little") + row.input_ids.tobytes() + row.labels.tobytes())
        return digest.hexdigest()[:16]

    def line(self) -> str:
        """What people are told of the rows."""
        total = sum(len(row.input_ids) for row in self.rows)
        trained = sum(int((row.labels != IGNORED).sum()) for row in self.rows)
        longest = max(len(row.input_ids) for row in self.rows)
        told = f"{len(self.rows):,} rows, {total:,} tokens of which {trained:,} are trained, the longest row {longest:,}"
        told += f"; {self.shortened:,} rows end early for want of room" if self.shortened else ""
        return told + (f"; {self.without_room:,} conversations have no room for an answer" if self.without_room else "")


def token_row(tokenizer: Any, conversation: Conversation, length: int) -> TokenRow | None:
    """One conversation in at most `length` tokens. An answer that would end beyond them is left out, and what follows it.

    None where no answer fits. An answer that spells out the token which ends turns ends there, as it would have.
    """
    end = end_of_turn(tokenizer)
    ids: list[int] = []
    labels: list[int] = []
    fitted = 0
    for told, answer in conversation.exchanges:
        context = encode_feedback(tokenizer, told) if fitted else encode_prompt(tokenizer, told)
        answered = tokenizer.encode(answer.partition(end)[0] + end, add_special_tokens=False)
        if len(ids) + len(context) + len(answered) > length:
            break
        ids += [*context, *answered]
        labels += [*[IGNORED] * len(context), *answered]
        fitted += 1
    if not fitted:
        return None
    return TokenRow(np.array(ids, np.int32), np.array(labels, np.int32), fitted < len(conversation.exchanges))


def token_rows(tokenizer: Any, conversations: Iterable[Conversation], length: int) -> Tokens:
    """All conversations that have room. Raises UsageError where none has."""
    made: Sequence[TokenRow | None] = [token_row(tokenizer, conversation, length) for conversation in conversations]
    rows = tuple(row for row in made if row is not None)
    if not rows:
        raise UsageError(f"no answer of the table fits into {length} tokens: raise --length")
    return Tokens(rows, sum(row.shortened for row in rows), len(made) - len(rows))
