"""When a call's tensors are given up."""

from __future__ import annotations

import torch

from rlkernel.evaluator.program.lifetimes import last_uses
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Config, Launch, Op, Program, Step
from rlkernel.evaluator.program.values import Pairs, TensorRef, Value


def add(read: int, made: int) -> Op:
    return Op("aten.add.Scalar", (TensorRef(read), 1.0), {}, (made,))


def program(forward: tuple[Step, ...], output: Value, carried: dict[int, int] | None = None) -> Program:
    return Program((), (), (), {}, (0,), forward, output, carried=carried or {})


def test_a_tensor_is_given_up_after_the_last_step_that_names_it() -> None:
    # 0 is an input, 4 is returned; 1 is read by steps 1 and 2, 2 by nobody, 3 by step 3
    steps = (add(0, 1), add(1, 2), add(1, 3), add(3, 4))
    assert last_uses(program(steps, TensorRef(4))) == ((), (2,), (1,), (3,))


def test_what_is_returned_left_or_taken_by_a_hook_of_a_launch_stays() -> None:
    hooked = Launch(0, {"x": TensorRef(1)}, (Config({}, {}, (1, 1, 1), before=(add(2, 5),)),), 1)
    steps = (add(0, 1), add(0, 2), add(0, 3), hooked)
    assert last_uses(program(steps, Pairs((("y", TensorRef(3)),)))) == ((), (), (), (1, 2))
    assert last_uses(program(steps[:3], TensorRef(3), {9: 2})) == ((1,), (), ())


def test_a_chain_keeps_two_tensors_at_a_time() -> None:
    steps = tuple(add(k, k + 1) for k in range(20))
    replay = Replay(program(steps, TensorRef(20)), torch.device("cpu"), lambda *call: None)
    alive: list[int] = []
    found = replay.forward([torch.zeros(4)], 0, observe=lambda *step: alive.append(len(replay.values)))
    assert found.tolist() == [20.0] * 4
    assert max(alive) == 3, "the input, a step's argument and its result"
