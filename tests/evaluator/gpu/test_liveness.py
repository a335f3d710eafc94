"""Which functions are live, what a call that never ends costs, and that nothing is believed that was not seen. On the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.gpu import liveness
from rlkernel.evaluator.gpu.liveness import Failing, Indispensable, in_order, live_functions, patience
from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.evaluator.program.first_call import FIRST_CALL
from rlkernel.evaluator.program.replay import StepFailed

ALLOWED = 1e-5


def never() -> float:
    raise AssertionError("no call had to be repeated")


def leaving_out(changes: dict[int, float | bool], seen: list[int]) -> Callable[[int], float]:
    """Changes by function; True: the rest never ends, False: it leaves its tensors."""

    def leave_out(function: int) -> float:
        seen.append(function)
        change = changes[function]
        if isinstance(change, bool):
            raise Failing(spun=change)
        return change

    return leave_out


def test_a_sure_change_needs_no_repeated_call_and_a_small_one_is_held_against_it() -> None:
    assert live_functions([2, 0, 1], leaving_out({0: 0.0, 1: 1.0, 2: float("inf")}, []), never, ALLOWED) == {
        0: False, 1: True, 2: True,
    }  # fmt: skip
    unsure = leaving_out({0: 5e-6, 1: 3e-6}, [])
    assert live_functions([0, 1], unsure, lambda: 1e-6, ALLOWED) == {0: True, 1: False}  # 4 * 1e-6 lies between


def test_what_was_found_before_a_process_is_lost_is_handed_on() -> None:
    seen: list[int] = []
    with pytest.raises(Indispensable) as lost:
        live_functions([3, 2, 1, 0], leaving_out({3: 1.0, 2: 5e-6, 1: True, 0: 1.0}, seen), never, ALLOWED)
    assert (lost.value.function, lost.value.found, lost.value.spun) == (1, {3: True}, True)  # 2 would have needed the noise
    assert seen == [3, 2, 1]


@given(st.lists(st.integers(0, 5)), st.floats(0, 10), st.floats(0.1, 10))
def test_order_and_patience(functions: list[int], seconds: float, most: float) -> None:
    ordered = in_order(functions)
    assert sorted(ordered) == sorted(set(functions))
    assert not functions or ordered[0] == functions[-1]
    assert min(most, 20 * seconds) <= patience(seconds, most) <= most


KINDS = st.sampled_from(["live", "dead", "spins", "faults"])


@given(st.lists(KINDS, min_size=1, max_size=24))
def test_no_dead_function_ever_counts_and_spins_are_few(kinds: list[str]) -> None:
    """The rounds of a stay over several runners: what counts as live is live, whatever else the candidate does."""
    changes: dict[int, float | bool] = {}
    for function, kind in enumerate(kinds):
        changes[function] = {"live": 1.0, "dead": 0.0, "spins": True, "faults": False}[kind]
    known: dict[int, bool] = {}
    spins = losses = 0
    while spins < liveness.MOST_SPINS:
        left = [function for function in in_order(range(len(kinds))) if function not in known]
        try:
            known |= live_functions(left, leaving_out(changes, []), never, ALLOWED)
            break
        except Indispensable as lost:
            known |= lost.found | {lost.function: True}
            losses, spins = losses + 1, spins + lost.spun
    assert all(kinds[function] == "dead" or live for function, live in known.items())
    assert not any(live and kinds[function] == "dead" for function, live in known.items())
    assert spins <= liveness.MOST_SPINS
    if kinds.count("spins") < liveness.MOST_SPINS:
        assert known.keys() == set(range(len(kinds)))  # then nothing is left out of sight


def test_a_wrong_candidate_costs_no_process_and_only_a_right_one_is_taken_apart(imported: ModuleType) -> None:
    """`Session._first_round` judges before it leaves anything out."""
    session = imported.session
    order: list[str] = []

    class Played(session.Session):  # type: ignore[name-defined, misc]
        def __init__(self, matches: bool, tunes: bool = False) -> None:
            self.fused, self.subject, self.matches = None, SimpleNamespace(tunes=tunes), matches

        def _shows_tuning(self, first: object) -> bool:
            order.append("tuned")
            return True

        def round(self, checks: object, subject: object, kind: object) -> str:
            order.append("round")
            return "first"

        def _judged(self, checks: object, done: object) -> object:
            order.append("judged")
            return session.Match(self.matches, "", 0.0)

        def _live(self, first: object) -> dict[int, bool]:
            order.append("left out")
            return {0: True}

    assert Played(False)._first_round(None)[1] == {}
    assert Played(True)._first_round(None)[1] == {0: True}
    assert order == ["round", "judged", "round", "judged", "left out"]
    match, live = Played(True, tunes=True)._first_round(None)
    assert (match.matches, match.detail, live, order[5:]) == (False, FIRST_CALL, {}, ["round", "judged", "tuned"])


@pytest.mark.parametrize(
    ("error", "code", "found"),
    [
        ("step", 700, "fails"),  # an operator is the first to tell that a kernel before it has left its tensors
        ("step", None, "changes"),  # an operator that cannot do without what is left out
        ("cuda", 700, "fails"),
        ("cuda", None, "raises"),  # e.g. too little memory, which says nothing
        ("cuda", -1, "spins"),
        ("hung", None, "spins"),
    ],
)
def test_what_a_call_without_a_launch_says(
    imported: ModuleType, monkeypatch: pytest.MonkeyPatch, error: str, code: int | None, found: str
) -> None:
    session = imported.session
    errors = {"step": StepFailed("aten.add.Tensor: CUDA error"), "cuda": RuntimeError("CUDA error"), "hung": session.Hung()}

    def lost(seconds: float) -> int | None:
        if code == -1:
            raise session.Hung
        return code

    class Played(session.Session):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            self.fused, self.subject, self.seconds = None, None, 2.0

        def call(self, *args: object) -> None:
            raise errors[error]

    monkeypatch.setattr(session, "lost", lost)
    first = SimpleNamespace(seeds=None, kind=None, seconds=0.01)
    if found == "changes":
        assert Played()._change_without(0, first) == math.inf
        return
    with pytest.raises(RuntimeError if found == "raises" else Failing) as raised:
        Played()._change_without(0, first)
    assert found == "raises" or vars(raised.value)["spun"] == (found == "spins")


def test_outputs_that_are_noise_do_not_tell_whether_a_launch_matters(imported: ModuleType) -> None:
    """Another call has another noise, which is as large as all of it."""
    session, kind = imported.session, imported.session.Kind()
    noise, value = Tolerance(8.0, math.inf), Tolerance(1e-4, 0.1)
    played = session.Session.__new__(session.Session)

    def telling(*limits: Tolerance) -> list[int]:
        played.known = SimpleNamespace(allowed={"plain": limits})
        return played._telling(kind)

    assert telling(value, noise, value) == [0, 2]
    assert telling(noise, noise) == [0, 1]
