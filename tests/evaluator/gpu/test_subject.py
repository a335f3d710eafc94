"""A Program in guarded memory: where it lies, whose weights it has, which launch does all the work. Kernels are played here."""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from rlkernel.evaluator.compile.binaries import Compiled
from rlkernel.evaluator.program import replay
from rlkernel.evaluator.program.lifetimes import last_uses
from rlkernel.evaluator.program.schema import Config, Function, Launch, Op, Program, Scalar, Tuning
from rlkernel.evaluator.program.values import DeviceRef, TensorRef

EMPTY = Op("aten.empty_like.default", (TensorRef(1),), {"device": DeviceRef()}, (2,))
DOUBLE = Launch(0, {"x": TensorRef(1), "y": TensorRef(2)}, (Config({}, {}, (1, 1, 1)), Config({}, {}, (2, 1, 1))), 9)
ADD = Op("aten.add.Tensor", (TensorRef(2), TensorRef(0)), {}, (3,))
INIT = (Op("aten.zeros.default", ([3],), {"device": DeviceRef()}, (0,)),)
KERNEL = Function("k", "def k(x, y):\n    pass\n", 3, {})


def program(*steps: Any, output: int) -> Program:
    return Program((KERNEL,), (), INIT, {"w": 0}, (1,), steps, TensorRef(output))


class Double:
    """A kernel that writes twice x to y."""

    def __init__(self) -> None:
        self.grids: list[tuple[int, int, int]] = []
        self.numbers: list[Any] = []

    def launch(self, grid: tuple[int, int, int], args: dict[str, Any], stream: int) -> None:
        self.grids.append(grid)
        self.numbers.append(args.get("n"))
        args["y"].copy_(2 * args["x"])


class Model(nn.Module):
    def __init__(self, **weights: torch.Tensor) -> None:
        super().__init__()
        for name, weight in weights.items():
            self.register_buffer(name, weight)


X = torch.tensor([1.0, 2.0, 3.0])
PROGRAM = program(EMPTY, DOUBLE, ADD, output=3)


def compiled(key: str, **facts: Any) -> Compiled:
    """Facts of a binary with the symbol k, of which `facts` are others."""
    sizes = {"registers": 1, "spills": 0, "shared_bytes": 1024, "num_warps": 4, "num_ctas": 2, "tf32": False}
    scratch = {"global_scratch_size": 3, "global_scratch_align": 16, "profile_scratch_size": 0}
    return Compiled(key, "k", (), symbol="k", **{"parameters": (), "tensordesc_meta": (), **sizes, **scratch, **facts})


def subject_of(room: Any, made: Program = PROGRAM, choices: tuple[int, ...] = (1,)) -> tuple[Any, Double]:
    """A subject whose launch has binaries for these of its two configurations."""
    kernel = Double()
    subject = room.subject.Subject(made, {"1": {c: compiled("cubin") for c in choices}}, {"cubin": kernel}, 1.0)
    subject.lay_out([], [X])
    return subject, kernel


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (torch.tensor([1.0, 1.0, 1.0]), [3.0, 5.0, 7.0]),  # 2 x + w
        (torch.tensor([1.0, 1.0]), [2.0, 4.0, 6.0]),  # another shape: its own zeros stay
        (torch.ones(3, dtype=torch.float64), [2.0, 4.0, 6.0]),  # another dtype
    ],
)
def test_the_references_weights_replace_those_like_them(room: Any, weight: torch.Tensor, expected: list[float]) -> None:
    subject, _ = subject_of(room)
    subject.construct([], 5, Model(w=weight, other=torch.ones(3)))
    outcome = subject.forward([X], 6)
    assert outcome.output.tolist() == expected
    assert outcome.inputs[0].tolist() == X.tolist()
    assert outcome.inputs[0].data_ptr() != X.data_ptr()


def test_a_skipped_launch_leaves_fresh_memory(room: Any) -> None:
    subject, kernel = subject_of(room)
    subject.construct([], 5, Model())
    with_it, without = (subject.forward([X], 6, skip=skip) for skip in (frozenset(), frozenset({0})))  # the function 0
    assert with_it.output.tolist() == [2.0, 4.0, 6.0]
    assert without.output.tolist() != [2.0, 4.0, 6.0]
    assert len(kernel.grids) == 1


def test_a_stray_write_of_a_kernel_is_in_its_outcomes_guards(room: Any) -> None:
    subject, _ = subject_of(room)
    subject.construct([], 5, Model())
    outcome = subject.forward([X], 6)
    assert [bool(guards.broken()) for guards in outcome.guards] == [False, False]
    outcome.guards[0]._zones[1][0, -1] ^= 1  # the last byte before the memory that the kernel writes to
    assert [bool(guards.broken()) for guards in outcome.guards] == [True, False]


def test_a_long_forward_keeps_no_more_red_zones_than_fit(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.guards, "ZONES", 13 * 2 * 1024)
    turns = [Op("aten.relu.default", (TensorRef(3 + turn),), {}, (4 + turn,)) for turn in range(10)]
    subject, _ = subject_of(room, program(EMPTY, DOUBLE, ADD, *turns, output=13))
    subject.construct([], 5, Model())
    outcome = subject.forward([X], 6)
    assert outcome.output.tolist() == [2.0, 4.0, 6.0]
    kept = [raw.numel() for raw in outcome.guards[0]._alive]
    assert kept == [2 * 1024 + 512] * 13  # red zones, and 12 bytes
    assert not outcome.guards[0].broken()


def test_timed_calls_use_the_memory_that_was_laid_out(room: Any) -> None:
    subject, _ = subject_of(room)
    assert [(i, t.shape) for i, t in subject.places[0].items()] == [(0, X.shape)]
    assert len(subject.places) == 48  # 12 bytes
    subject.construct([], 5, Model())
    subject.places.refill(7)
    before = subject.places[7][0].tolist()
    assert subject.timed([X], 6, 7).tolist() == [2.0, 4.0, 6.0]
    assert subject.places[7][0].tolist() == [2.0, 4.0, 6.0] != before
    subject.release()
    assert (len(subject.places), subject.memory[0].used) == (0, False)


@pytest.mark.parametrize("most", [320 << 20, 0], ids=["in one piece", "one by one"])
def test_each_place_is_guarded_on_its_own(room: Any, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(room.guards, "ROW_BYTES", most)
    subject, _ = subject_of(room)
    memory = subject.memory[0]
    addresses = [place[0].data_ptr() for place in subject.places]
    assert len(set(addresses)) == 48 and min(b - a for a, b in itertools.pairwise(sorted(addresses))) >= 2 * 4096 + 12
    subject.places.refill(7)
    subject.places[7][0].fill_(1.0)
    assert not memory.broken()
    assert subject.places[7][0] is subject.places[7][0]  # `refill` knows its words
    for address in (addresses[47] + 12, addresses[0] - 1, addresses[20] + 12 + 4095):
        before = ctypes.string_at(address, 1)[0]
        ctypes.memset(address, before ^ 1, 1)
        assert memory.broken()
        ctypes.memset(address, before, 1)
        assert not memory.broken()
    assert {(t.untyped_storage().nbytes(), t.storage_offset()) for place in subject.places for t in place.values()} == {(12, 0)}


@pytest.mark.parametrize(
    ("made", "only"),
    [
        (program(EMPTY, DOUBLE, output=2), 1),
        (PROGRAM, None),  # the addition works too
        (program(EMPTY, DOUBLE, output=1), None),  # the output is the input's memory
    ],
)
def test_a_launch_that_does_all_the_work_is_known(room: Any, made: Program, only: int | None) -> None:
    assert subject_of(room, made)[0].only == only


PREPARED = replace(
    program(EMPTY, DOUBLE, Op("aten.mul.Tensor", (TensorRef(2), TensorRef(5)), {}, (3,)), output=3),
    prepare=(Op("aten.sum.default", (TensorRef(4),), {}, (5,)), Scalar(0, "item", (TensorRef(5),))),
    prepare_inputs=((4,),),
)


def test_a_construction_prepares_from_its_own_first_inputs(room: Any) -> None:
    subject, _ = subject_of(room, PREPARED)
    assert subject.calls_before == 1
    for first, factor in ((torch.ones(3), 3.0), (2 * torch.ones(3), 6.0)):  # the sum of the first inputs
        subject.construct([], 5, Model(), [first])
        assert subject.replay.scalars == {0: factor}
        assert subject.forward([X], 6).output.tolist() == [2 * factor, 4 * factor, 6 * factor]


def test_what_a_call_leaves_to_the_next_is_not_in_memory_that_is_used_again(room: Any) -> None:
    subject, _ = subject_of(room, replace(program(EMPTY, DOUBLE, ADD, output=3), carried={0: 2}))
    assert sorted(subject.places[0]) == []
    subject.construct([], 5, Model())
    assert [subject.timed([X], 6, 0).tolist() for _ in range(2)] == [[2.0, 4.0, 6.0], [4.0, 8.0, 12.0]]  # 2 x + 0, 2 x + 2 x
    assert subject.state["w"].tolist() == [2.0, 4.0, 6.0]


def test_a_configuration_has_its_own_numbers_and_hook(room: Any) -> None:
    fill = Op("aten.fill_.Scalar", (TensorRef(1), 10.0), {}, (1,))
    own = replace(
        DOUBLE,
        args={**DOUBLE.args, "n": 1},
        configs=(DOUBLE.configs[0], replace(DOUBLE.configs[1], args={"n": 7}, before=(fill,))),
    )
    subject, kernel = subject_of(room, program(EMPTY, own, output=2))
    subject.construct([], 5, Model())
    assert subject.forward([X.clone()], 6).output.tolist() == [20.0, 20.0, 20.0]
    assert kernel.numbers == [7]


def test_the_first_of_launches_that_are_tuned_together_chooses_for_all(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second launch would be faster in configuration 0; the third chooses for itself."""
    first, second, third = (
        replace(DOUBLE, configs=tuple(replace(config) for config in DOUBLE.configs), tuned_with=number) for number in (4, 4, None)
    )
    made = program(EMPTY, first, second, third, output=2)
    kernel = Double()
    tables = {str(step): {choice: compiled("cubin") for choice in (0, 1)} for step in (1, 2, 3)}
    subject = room.subject.Subject(made, tables, {"cubin": kernel}, 1.0)
    subject.lay_out([], [X])
    tuned: list[int] = []

    class Mark:
        """An event whose runs take 5 us in configuration 0, and 3 in configuration 1; the other way round in the third launch."""

        def __init__(self) -> None:
            self.fast = (kernel.grids[-1] == (2, 1, 1)) != (len(tuned) > 1)

        def elapsed_time(self, later: Any) -> float:
            return 0.003 if later.fast else 0.005

    choose = subject._tune
    monkeypatch.setattr(subject, "_tune", lambda index, *rest: (tuned.append(index), choose(index, *rest)))
    monkeypatch.setattr(room.tuning, "mark", Mark)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: None)
    subject.construct([], 5, Model())
    subject.tune([X], 6)
    assert (tuned, subject.choices) == ([1, 3], {1: 1, 2: 1, 3: 0})
    kernel.grids.clear()
    subject.construct([], 5, Model())
    subject.forward([X], 6)
    assert kernel.grids == [(2, 1, 1), (2, 1, 1), (1, 1, 1)]


def test_a_configuration_without_a_binary_is_not_launched(room: Any) -> None:
    one, kernel = subject_of(room, choices=(1,))
    one.construct([], 5, Model())
    one.forward([X], 6)
    assert (kernel.grids, one.choices, one.tunable) == ([(2, 1, 1)], {1: 1}, False)
    assert subject_of(room, choices=(0, 1))[0].tunable
    none, _ = subject_of(room, choices=())
    none.construct([], 5, Model())
    with pytest.raises(room.tuning.NoConfig):
        none.forward([X], 6)


def test_the_driver_gets_what_it_needs_of_a_binary(room: Any) -> None:
    facts = compiled("cubin", parameters=(("x", "*fp32"), ("n", "i32")), tensordesc_meta=(None,))
    assert room.subject.binary_of(facts) == room.driver.Binary("k", (("x", "*fp32"), ("n", "i32")), 1024, 4, 2, 3, 16, (None,))


def test_what_a_program_says_of_lifetimes_is_looked_at_once(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Program] = []
    monkeypatch.setattr(room.subject, "last_uses", lambda program: (made.append(program), last_uses(program))[1])
    monkeypatch.setattr(replay, "last_uses", lambda program: made.append(program))
    subject, _ = subject_of(room)
    for _ in range(2):
        subject.construct([], 5, Model())
        assert subject.timed([X], 6, 0).tolist() == [2.0, 4.0, 6.0]
        assert subject.replay._last_uses == last_uses(PROGRAM)
    assert made == [PROGRAM]


class Halve:
    """A kernel that halves x where it lies."""

    def launch(self, grid: tuple[int, int, int], args: dict[str, Any], stream: int) -> None:
        args["x"].mul_(0.5)


def halved(room: Any, tuning: Tuning | None, loads: tuple[tuple[str, ...], ...]) -> Any:
    """A subject that doubles its input and halves that in place; of the binary of each configuration, what it loads through."""
    double = Op("aten.mul.Tensor", (TensorRef(1), 2.0), {}, (2,))
    launch = Launch(0, {"x": TensorRef(2)}, tuple(Config({}, {}, (n + 1, 1, 1)) for n in range(len(loads))), 9, tuning=tuning)
    facts = {n: replace(compiled("cubin"), stores=("x",), loads=names) for n, names in enumerate(loads)}
    subject = room.subject.Subject(program(double, launch, output=2), {"1": facts}, {"cubin": Halve()}, 1.0)
    subject.lay_out([], [X])
    subject.construct([], 5, Model())
    return subject


@pytest.mark.parametrize(
    ("tuning", "loads", "tunes", "first"),
    [
        (Tuning(), (("x",),), True, 0.5),  # 2 / 2 / 2
        (Tuning(), ((), ("x",)), True, 0.5),  # the other configuration loads it
        (Tuning(), ((),), False, 0.5),
        (Tuning(restored=("x",)), (("x",),), False, 1.0),
        (Tuning(reset=("x",)), (("x",),), True, 0.0),
        (None, (("x",),), False, 1.0),
    ],
)
def test_a_first_call_tunes_before_it_launches(
    room: Any, tuning: Tuning | None, loads: tuple[tuple[str, ...], ...], tunes: bool, first: float
) -> None:
    subject = halved(room, tuning, loads)
    assert subject.tunes is tunes
    found = [subject.forward([X], 6, tuning=tuning).output.tolist() for tuning in (False, True, False)]
    assert found == [X.tolist(), (first * X).tolist(), X.tolist()]
