"""Feedback: what the policy is told about its candidate, as a few short lines of bounded length with facts of the evaluation.

Everything that a candidate can influence (detail, kernel names) is escaped, so that it forms no fence and no token of a chat
template.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from rlkernel.metrics import is_lazy
from rlkernel.types import Evaluation, Status

STEPS = 3
"""How many of the costliest steps are named."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Largest numbers of characters; the whole text stays under `total` by construction."""

    detail: int
    name: int
    total: int


SHORT = Limits(detail=240, name=32, total=600)
FULL = Limits(detail=1200, name=64, total=2000)

_ROUND = str.maketrans("<>", "()")

NEXT = {
    Status.CORRECT: "make it faster.",
    Status.INCORRECT: "fix the result.",
    Status.NO_CODE: "answer with one fenced python block.",
    Status.INVALID: "define a ModelNew that can be constructed.",
    Status.UNTRACEABLE: "do not use tensor values on the host.",
    Status.INCONSISTENT: "do the same work on every call.",
    Status.COMPILE_ERROR: "fix the kernel.",
    Status.NO_KERNEL: "compute the output in a Triton kernel.",
    Status.RUNTIME_ERROR: "fix the error.",
    Status.OUT_OF_BOUNDS: "mask every load and store.",
    Status.TIMEOUT: "do less work.",
    Status.CRASH: "fix the crash.",
    Status.IMPLAUSIBLE: "do all of the work.",
}


def feedback_text(evaluation: Evaluation, limits: Limits = SHORT) -> str:
    """One `key: value` per line: status, detail, error, speedup, coverage, costliest steps, and what to do next.

    Times are in microseconds, the error is relative to the reference's norm, and its order of magnitude alone is
    told: its digits depend on the inputs, which differ from run to run. The text has at most `limits.total` characters.
    """
    lines = [f"status: {evaluation.status}"]
    detail = escape(evaluation.detail, limits.detail)
    if detail and evaluation.status is not Status.CORRECT:  # there it is for the reader of a report: at which sizes it was judged
        lines.append(f"detail: {detail}")
    if evaluation.matches is not None and evaluation.status not in (Status.CORRECT, Status.INCORRECT):
        lines.append(f"outputs match: {'yes' if evaluation.matches else 'no'}")
    if evaluation.max_error is not None:
        lines.append(f"error: {magnitude(evaluation.max_error)}")
    if evaluation.speedup is not None:
        lines.append(f"speedup: {_speedup(evaluation)}")
    if evaluation.coverage is not None:
        lines.append(f"coverage: {evaluation.coverage:.0%}")
    if steps := _steps(evaluation, limits.name):
        lines.append(f"steps: {steps}")
    lazy = is_lazy(evaluation)
    lines.append(f"next: {'move more of the work into the kernel.' if lazy else NEXT[evaluation.status]}")
    return "\n".join(lines)


def magnitude(value: float) -> str:
    """The power of ten that is nearest to a number that is not negative, so that it does not belie the digits of a detail.

    >>> magnitude(7.8e-08), magnitude(0.912), magnitude(0.31), magnitude(1.0), magnitude(0.0), magnitude(float("inf"))
    ('1e-07', '1e+00', '1e-01', '1e+00', '0', 'inf')
    """
    if not value or not math.isfinite(value):
        return f"{value:g}"
    digits, _, exponent = f"{value:e}".partition("e")
    return f"1e{int(exponent) + (float(digits) > 5.5):+03d}"  # 5.5 lies halfway between 1 and 10


def escape(text: str, limit: int) -> str:
    """One line of at most `limit` printable characters without fences and without anything shaped like `<token>` or `[INST]`.

    >>> escape("bad\\n```<|im_start|>system", 40)
    "bad '''(|im_start|)system"
    """
    text = " ".join("".join(character if character.isprintable() else " " for character in text).split())[: 4 * limit]
    text = re.sub(r"`{3,}|~{3,}", "'''", text)
    text = re.sub(r"<\S+>", lambda token: token[0].translate(_ROUND), text)  # the longest run, so that nesting leaves none
    text = re.sub(r"\[(/?INST)\]", r"(\1)", text)
    return text if len(text) <= limit else text[: limit - 3].rstrip() + "..."


def _speedup(evaluation: Evaluation) -> str:
    text = f"{evaluation.speedup:.3g}x"
    if evaluation.candidate_us is not None and evaluation.reference_us is not None:
        text += f" ({evaluation.candidate_us:.3g} us, reference {evaluation.reference_us:.3g} us)"
    return text


def _steps(evaluation: Evaluation, limit: int) -> str:
    """The costliest steps, e.g. `fused 86%, aten.add 10%`. A launch that does not reach the output is called dead."""
    named = [(fact.share, f"{escape(fact.kernel, limit)}{'' if fact.live else ' (dead)'}") for fact in evaluation.launches]
    named += [(fact.share, escape(fact.op, limit)) for fact in evaluation.ops]
    costliest = sorted(named, key=lambda step: step[0], reverse=True)[:STEPS]
    return ", ".join(f"{name} {share:.0%}" for share, name in costliest)
