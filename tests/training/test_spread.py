"""One engine over several: every request is answered once, in the process that has computed its beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from rlkernel.policy.engine import Request, Sample
from rlkernel.training import ranks
from rlkernel.training.spread import Sampler, Spread


@dataclass
class Scripted:
    """An engine that finishes a request in its second `advance`; its tokens are the process and the seed."""

    name: int
    waiting: list[list[Request]] = field(default_factory=lambda: [[]])
    seen: list[tuple[int, ...]] = field(default_factory=list)
    refreshed: int = 0

    @property
    def active(self) -> int:
        return sum(map(len, self.waiting))

    @property
    def free(self) -> int:
        return 8 - self.active

    def advance(self, joining: Sequence[Request], tokens: int) -> list[Sample]:
        self.seen += [request.context_ids for request in joining]
        self.waiting.append(list(joining))
        return [Sample(each.key, (self.name, each.seed), (-1.0, -1.0), "stop") for each in self.waiting.pop(0)]

    def refresh(self) -> None:
        self.refreshed += 1


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Scripted]:
    """Two processes in one: what the first sends, the other one answers at once."""
    engines, answers = [Scripted(0), Scripted(1)], []
    other = Sampler(lambda: engines[1])
    current = [0]

    def gather(value: Any) -> list[Any]:
        answers.append(value)
        return [value, *answers[:1]] if current[0] == 0 else []

    def send(message: Any) -> None:
        answers.clear()
        current[0] = 1
        other.answer(message)
        current[0] = 0

    for name, value in {"size": lambda: 2, "rank": lambda: current[0], "send": send, "gather": gather}.items():
        monkeypatch.setattr(ranks, name, value)
    return engines


def test_requests_are_shared_out_and_a_conversation_stays_where_it_is(engines: list[Scripted]) -> None:
    spread = Spread(lambda: engines[0], alone=False)
    first = [Request(key, (9,), seed=key, budget=4) for key in range(5)]
    assert spread.advance(first, 32) == []
    assert spread.active == 5 and spread.free == 2 * 8 - 5
    assert [len(engine.seen) for engine in engines] == [3, 2]
    found = spread.advance([], 32)
    assert sorted(sample.key for sample in found) == list(range(5)) and spread.active == 0
    # The second request of each conversation, in the opposite order, goes to whoever has its beginning.
    second = [Request(10 + sample.key, (9, *sample.token_ids, 7), seed=0, budget=4) for sample in reversed(found)]
    spread.advance(second, 32)
    for engine in engines:
        assert all(context[1] == engine.name for context in engine.seen if len(context) > 1)
    with pytest.raises(RuntimeError, match="may not change"):
        spread.refresh()
    spread.advance([], 32)
    spread.refresh()
    assert [engine.refreshed for engine in engines] == [1, 1]


def test_one_that_samples_alone_only_asks_for_weights(engines: list[Scripted]) -> None:
    spread = Spread(lambda: engines[0], alone=True)
    spread.advance([Request(1, (9,), seed=0, budget=4)], 32)
    assert (spread.active, spread.free, engines[1].seen) == (1, 7, [])
    assert [sample.key for sample in spread.advance([], 32)] == [1]
    spread.refresh()
    assert [engine.refreshed for engine in engines] == [1, 1]
