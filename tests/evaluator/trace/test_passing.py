"""Arguments and outputs of forward, between values and data."""

from __future__ import annotations

import json

import pytest
import torch

from rlkernel.evaluator.judging.references.arguments import spec
from rlkernel.evaluator.program.schema import specs_of
from rlkernel.evaluator.program.values import TensorRef
from rlkernel.evaluator.trace.passing import decode_spec, encode_output
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable, stand_in

X = {"tensor": {"shape": [2, 3], "stride": [3, 1], "dtype": "float32"}}


def test_specifications_become_stand_ins() -> None:
    recorder, ids = Recorder(), list[int]()
    args, kwargs = decode_spec([[X, 2], {"dict": [["scale", {"float": "inf"}], ["y", X]]}], recorder, ids)
    assert ids == [0, 1]
    assert (args[0].shape, args[0].stride(), args[0].dtype, args[1]) == ((2, 3), (3, 1), torch.float32, 2)
    assert kwargs["scale"] == float("inf")
    assert recorder.ids.of(kwargs["y"]) == 1


def test_tuples_stay_tuples_on_their_way_to_a_candidate() -> None:
    recorder, ids = Recorder(), list[int]()
    given = [(3, 5), [2, (torch.zeros(2, 3), None)], {"padding": (1, float("inf"))}, ()]
    sent = json.loads(json.dumps(spec(given)))
    window, (two, (x, nothing)), named, empty = decode_spec(sent, recorder, ids)
    assert (window, two, nothing, named, empty) == ((3, 5), 2, None, {"padding": (1, float("inf"))}, ())
    assert (recorder.ids.of(x), ids) == (0, [0])
    assert [found.shape for found in specs_of(sent)] == [(2, 3)]


def test_a_tensor_of_another_class_is_not_returned() -> None:
    class Mine(torch.Tensor):
        pass

    recorder = Recorder()
    x = stand_in(recorder, (2,), (1,), torch.float32)
    assert encode_output((x, None, [1.5]), recorder) == [TensorRef(0), None, [1.5]]
    with pytest.raises(Untraceable, match=r"^forward returns a Mine; return a plain tensor$"):
        encode_output(x.as_subclass(Mine), recorder)
