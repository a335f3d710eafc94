"""The interpreter is set up in the zygote, and Triton is as it was for the zygote's other children."""

from __future__ import annotations

from tests.forked import run

PROBE = """
from rlkernel.evaluator.cpu import patches
from rlkernel.evaluator.cpu.language import the_machine
from triton import language as tl
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction

def everything():
    return [(place, dict(vars(place))) for place in patches._places()]

def differs(before):
    rows = [(place, name) for place, was in before for name in {**was, **vars(place)}
            if was.get(name) is not vars(place).get(name) or (name in was) != (name in vars(place))]
    return sorted(f"{getattr(place, '__name__', place)}.{name}" for place, name in rows)

own, before = interpreter.interpreter_builder, everything()
with patches.taken_back():
    machine, semantic = the_machine()
    assert interpreter.interpreter_builder is machine is not own
    patched = differs(before)
assert {"triton.language.load", "triton.language.core.reduce", "tensor.__bool__", "JITFunction.__get__"} <= set(patched), patched
assert patched.count("triton.language.extra.cuda.smid") == 2, "the module that is imported, and the one that the language names"
assert "__get__" not in vars(JITFunction)
assert differs(before) == []
for again in range(2):
    assert the_machine() == (machine, semantic)
    assert differs(before) == patched
"""


def test_what_the_interpreter_changes_is_taken_back_and_put_in_again() -> None:
    found = run(["-c", PROBE])
    assert (found.returncode, found.stderr) == (0, "")
