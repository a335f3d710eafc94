"""Steps that only the host would take, and what must stay of them."""

from __future__ import annotations

from rlkernel.evaluator.program.schema import Config, Launch, Literal, Op
from rlkernel.evaluator.program.values import TensorRef
from rlkernel.evaluator.trace.host_values import without_host_values

X, SHAPE, SIZE, Y = 0, 1, 2, 3
LITERAL = Literal(SHAPE, "int64", (2,), "")
PRODUCT = Op("aten.prod.default", (TensorRef(SHAPE),), {}, (SIZE,))
RELU = Op("aten.relu.default", (TensorRef(X),), {}, (Y,))


def test_what_is_only_read_goes() -> None:
    assert without_host_values((LITERAL, PRODUCT, RELU), TensorRef(Y), ()) == (RELU,)


def test_what_a_step_the_output_or_the_next_call_takes_stays() -> None:
    launch = Launch(0, {"x": TensorRef(X), "shape": TensorRef(SHAPE)}, (Config({}, {}, (1, 1, 1)),), 1)
    assert without_host_values((LITERAL, launch), TensorRef(X), ()) == (LITERAL, launch)
    scaled = Op("aten.mul.Tensor", (TensorRef(X), TensorRef(SIZE)), {}, (Y,))
    assert without_host_values((LITERAL, PRODUCT, scaled), TensorRef(Y), ()) == (LITERAL, PRODUCT, scaled)
    assert without_host_values((LITERAL, PRODUCT, RELU), [TensorRef(Y), TensorRef(SIZE)], ()) == (LITERAL, PRODUCT, RELU)
    assert without_host_values((LITERAL, PRODUCT, RELU), TensorRef(Y), (SIZE,)) == (LITERAL, PRODUCT, RELU)


def test_a_change_in_place_stays_with_the_tensor_that_is_taken() -> None:
    doubled = Op("aten.mul_.Scalar", (TensorRef(SHAPE), 2), {}, (SIZE,))
    scaled = Op("aten.mul.Tensor", (TensorRef(X), TensorRef(SHAPE)), {}, (Y,))
    assert without_host_values((LITERAL, doubled, scaled), TensorRef(Y), ()) == (LITERAL, doubled, scaled)


def test_what_moves_the_generator_stays() -> None:
    noise = Op("aten.rand_like.default", (TensorRef(SHAPE),), {}, (SIZE,))
    assert without_host_values((LITERAL, noise, RELU), TensorRef(Y), ()) == (LITERAL, noise, RELU)
