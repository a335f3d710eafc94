"""A CUDA graph's replay is recorded as what was captured; addresses tell tensors apart, and lead nowhere."""

from __future__ import annotations

import textwrap

import pytest

from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.trace.addresses import ALIGNMENT
from rlkernel.evaluator.trace.candidate import Verdict
from tests.evaluator.trace.test_candidate import program

CAPTURED = "self.graph = torch.cuda.CUDAGraph()\n    with torch.cuda.graph(self.graph):\n        "
FIRST = "if self.at != x.data_ptr():\n    self.at = x.data_ptr()\n    "
"""What makes a graph for each place of the input."""


def operators(found: Program) -> list[str]:
    return [step.op.split(".")[1] for step in found.forward if isinstance(step, Op)]


def refused(forward: str, init: str = "self.graph = None") -> str:
    with pytest.raises(Verdict) as error:
        program(forward, init=init)
    return f"{error.value.status}: {error.value.detail}"


def test_a_capture_runs_nothing_and_each_replay_runs_all() -> None:
    body = "{first}{captured}self.y = (x + 1).relu()\nself.graph.replay()\nself.graph.replay()\nreturn self.y"
    found = program(body.format(first=FIRST, captured=CAPTURED), init="self.at = None")
    assert operators(found) == ["add", "relu", "add", "relu"]
    assert found.forward[0].args[0].number == found.inputs[0]  # type: ignore[union-attr]
    assert found.output.number == found.forward[-1].outs[0]  # type: ignore[union-attr]
    assert found.prepare == (), "the first call does the same: a capture is no work"


def test_a_view_of_an_input_is_a_view_of_the_next_input() -> None:
    body = "{first}row = x[1]\n    {captured}self.y = row * 2\nself.graph.replay()\nreturn self.y"
    found = program(body.format(first=FIRST, captured=CAPTURED), init="self.at = None")
    assert operators(found) == ["as_strided", "mul"]
    view = found.forward[0]
    assert isinstance(view, Op) and (view.args[0].number, view.args[1:]) == (found.inputs[0], ([3], [1], 3))  # type: ignore[union-attr]


def test_what_is_captured_has_no_values_before_a_replay_and_new_ones_after() -> None:
    body = "self.graph = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(self.graph):\n    y = x + 1\nreturn y * 2"
    assert "a tensor was made in a way that the trace does not see" in refused(body)
    after = "{first}{captured}self.y = x + 1\n    self.graph.replay()\n    self.row = self.y[0]\n"
    after += "self.graph.replay()\nreturn self.row * 2"
    found = program(after.format(first=FIRST, captured=CAPTURED), init="self.at = None")
    assert operators(found) == ["add", "as_strided", "mul"], "the view is of what the last replay has made"


def test_state_that_a_graph_changes_is_changed_once_per_replay() -> None:
    body = "if self.graph is None:\n    {captured}self.count.add_(1)\nself.graph.replay()\nreturn x * self.count"
    found = program(body.format(captured=CAPTURED), init="self.graph = None; self.register_buffer('count', torch.zeros(1))")
    assert operators(found) == ["add_", "mul"]
    assert found.forward[0].args[0].number == found.state["count"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("torch.cuda.CUDAGraph().replay()", "Called CUDAGraph::replay without a preceding successful capture."),
        ("torch.cuda.CUDAGraph().capture_end()", "capture_end() called without capture_begin()"),
    ],
)
def test_what_torch_refuses_is_refused(body: str, line: str) -> None:
    assert refused(body).startswith("runtime_error") and line in refused(body)


def test_a_graph_that_reads_the_place_of_an_old_input_is_seen_when_inputs_move() -> None:
    capture = "self.graph = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(self.graph):\n    self.y = x + 1\n"
    never = "if self.graph is None:\n" + textwrap.indent(capture, "    ") + "self.graph.replay()\nreturn self.y"
    assert refused(never).startswith("inconsistent: forward does other work where its inputs lie elsewhere in memory")
    looks = never.replace("self.graph is None", "self.at != x.data_ptr()").replace("self.y =", "self.at, self.y = x.data_ptr(),")
    assert operators(program(looks, init="self.at = None")) == ["add"]


def test_a_branch_on_the_address_of_the_first_input_is_seen_when_inputs_move() -> None:
    body = "self.at = self.at or x.data_ptr()\nreturn x + 1 if x.data_ptr() == self.at else x + 2"
    assert refused(body, init="self.at = None").startswith("inconsistent: forward does other work where its inputs lie")


def test_addresses_tell_memory_apart() -> None:
    checks = (
        "x.data_ptr() == x[0].data_ptr()", "x[1].data_ptr() - x.data_ptr() == 12", f"x.data_ptr() % {ALIGNMENT} == 0",
        "x.data_ptr() == x.view(6).data_ptr() == x.t().data_ptr()", "x.data_ptr() != self.w.data_ptr()",
        "x.clone().data_ptr() not in (x.data_ptr(), self.w.data_ptr())", "self.seen in (None, x.data_ptr())",
        "torch.empty(600).data_ptr() != torch.empty(600).data_ptr()",
    )  # fmt: skip
    body = "self.calls += 1\nself.seen = self.seen if self.calls < 5 else None  # in the last calls inputs lie elsewhere\n"
    body += "".join(f"assert {check}, {check!r}\n" for check in checks) + "self.seen = x.data_ptr()\nreturn x + self.w"
    assert operators(program(body, init="self.w, self.seen, self.calls = nn.Parameter(torch.ones(3)), None, 0"))[-1] == "add"


def test_no_tensor_is_made_of_addresses() -> None:
    assert "a tensor of addresses cannot be traced" in refused("return x + torch.tensor([x.data_ptr(), 0])")
