"""The process that a referee holds: it imports a candidate, and calls and times it on request. All of it is untrusted.

The candidate's Python can change everything here, the clock included. So nothing here decides: see `referee`.
"""

from __future__ import annotations

import importlib.util
import socket
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rlkernel.errors import one_line
from rlkernel.evaluator import wire
from rlkernel.evaluator.judging.references.flags import set_precision
from rlkernel.evaluator.judging.references.reference_calls import as_reference, call, hand_over, state_of, tensors_of
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import RoundOutputs
from rlkernel.evaluator.messages.native import Begin, Call, Construct, Done, Draw, HandOver, Raised, TimeCall, Timed
from rlkernel.evaluator.native.calls import CallClock, PlacedReference, timed_call
from rlkernel.evaluator.program.tensors import flatten, lent, overlapping
from rlkernel.seeds import following

MODULE = "candidate"


def serve(sock: socket.socket) -> None:
    """Answer the referee until it closes the socket. What the candidate raises, SystemExit included, is an answer, too."""
    held = _Held()
    while (message := wire.receive(sock)) is not None:
        body = wire.Body()
        try:
            answer = held.answer(message[0], body)
            packed = codec.pack(answer, body)
        except BaseException as error:  # the candidate's failure becomes data
            packed = codec.pack(Raised(f"{_line_of(error, held.path)}{one_line(error)}"[:400]))
        wire.send(sock, packed)
        del body, packed, message  # now, and not inside of the next call, which may be timed


class _Held:
    """The candidate's module, and what it returned last."""

    def __init__(self) -> None:
        self.path = ""
        """The candidate's file."""
        self._names: dict[str, Any] = {}
        self._held_as: dict[str, str] = {}
        """What the candidate calls the reference's state."""

    def answer(self, header: dict[str, Any], body: wire.Body) -> Done | RoundOutputs | Timed:
        """The answer to one question. Raises whatever the candidate raises."""
        question: Begin | Construct | Call | TimeCall | HandOver
        question = codec.unpack(header, Begin, Construct, Call, TimeCall, HandOver)
        match question:
            case Begin():
                self._begin(question)
            case Construct(draw):
                self._construct(draw)
            case Call(draw, watched):
                return self._call(draw, watched, body)
            case TimeCall(draw):
                self._last = timed_call(self._module, self._reference, draw, self._clock)
                return Timed(self._last.us, self._last.sums)
            case HandOver():
                return _outputs(self._last.output, [], {}, body)
        return Done()

    def _begin(self, begin: Begin) -> None:
        sys.dont_write_bytecode = True  # or another candidate's would be taken for this one's
        set_precision(begin.precision)
        self._copied = begin.copied
        self._reference = PlacedReference.load(begin.source, begin.name, begin.device, small=begin.small)
        self._clock = CallClock(self._reference.device)
        path = Path(begin.scratch, f"{MODULE}.py")
        path.write_text(begin.code)  # Triton finds the text of kernels by their file
        self.path = str(path)
        spec = importlib.util.spec_from_file_location(MODULE, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[MODULE] = module
        spec.loader.exec_module(module)
        self._names = vars(module)
        if not isinstance(self._names.get("ModelNew"), type):
            raise NameError("no class ModelNew(nn.Module): define one")

    def _construct(self, draw: Draw) -> None:
        """`ModelNew` from the seed of the reference's module and, where the way says so, at its weights."""
        args, kwargs = self._reference.reference.init_inputs(draw.init_seed)
        with following(draw.init_seed):  # seeds that it sets itself, as those of the reference
            made = self._names["ModelNew"](*args, **kwargs)
        if not isinstance(made, nn.Module):
            raise TypeError("ModelNew() did not give an nn.Module")
        self._module = made.to(self._reference.device)
        if draw.other:
            self._module.train(not self._module.training)
        if self._copied:
            self._held_as = hand_over(state_of(self._module), state_of(self._reference.drawn_model(draw)))

    def _call(self, draw: Draw, watched: tuple[str, ...], body: wire.Body) -> RoundOutputs:
        if not draw.again:
            self._construct(draw)
        inputs = self._reference.drawn_inputs(draw)
        output = call(self._module, inputs, draw.forward_seed)
        state = as_reference(state_of(self._module), self._held_as)
        return _outputs(output, tensors_of(inputs), {name: state[name] for name in watched if name in state}, body)


def _outputs(output: Any, inputs: list[torch.Tensor], state: dict[str, torch.Tensor], body: wire.Body) -> RoundOutputs:
    """What a call gave, on the host."""
    tensors: list[torch.Tensor] = []
    structure = flatten(output, tensors)
    return RoundOutputs(
        structure,
        tensors=tuple(body.add(tensor.detach().cpu()) for tensor in tensors),
        overlapping=tuple(overlapping(tensor) for tensor in tensors),
        lent=tuple(lent(tensor, inputs) for tensor in tensors),
        inputs=tuple(body.add(tensor.cpu()) for tensor in inputs),
        state={name: body.add(tensor.cpu()) for name, tensor in state.items()},
    )


def _line_of(error: BaseException, path: str) -> str:
    """`line 12: ` for the deepest line of the candidate's file."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == path else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f"line {line}: "
