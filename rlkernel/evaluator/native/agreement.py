"""Evaluations beside native runs of the same candidates: do the verdicts agree, and the speedups? Lines of Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.native import NativeEnd, NativeFound
from rlkernel.types import Evaluation

LONG_US = 100.0
"""Microseconds from which a candidate's speedups must agree more closely: launches alone make shorter ones vary."""
CLOSE_LONG, CLOSE_SHORT = 0.03, 0.10
"""How far speedups of long and of short candidates may differ and still agree, relative."""
VERDICTS = ("right", "wrong", "raised", "timeout", "died", "no room")
"""What a native run shows. `right`: KernelBench would count it, or it is within our bound on KernelBench's draws, which is the
wider one for bfloat16 and float8. `no room`: three processes hold the problem's tensors at a time, and one had no
memory."""
ALIKE = 0.10
"""How far two times of the reference may differ, relative, that are alike. A run that waits for its host takes longer."""
TOLD = 8
"""The most speedups that are told one by one."""


def lacked_memory(text: str) -> bool:
    """Whether a failure's text says that the device had no memory left."""
    return "out of memory" in text or "OutOfMemoryError" in text


def native_to_json(found: NativeFound) -> dict[str, Any]:
    """A native run as a row of results."""
    return {**asdict(found), "ended": str(found.ended)}


def native_from_json(row: Mapping[str, Any]) -> NativeFound:
    """The native run that `native_to_json` has shown; other keys of the row are left alone. Raises wire.BadMessage."""
    names = NativeFound.__dataclass_fields__
    found: NativeFound = codec.form_of(NativeFound).decode({key: value for key, value in row.items() if key in names})
    return found


@dataclass(frozen=True, slots=True)
class Judged:
    """One candidate with both findings."""

    id: str
    evaluation: Evaluation
    native: NativeFound

    @property
    def verdict(self) -> str:
        """What the native run shows, one of `VERDICTS`."""
        if self.native.ended is NativeEnd.RAN:
            return "right" if self.native.right or self.native.matches else "wrong"
        killed = "SIGKILL" in self.native.detail  # as the host does where its own memory is full
        return "no room" if killed or lacked_memory(self.native.detail) else str(self.native.ended)

    @property
    def agrees(self) -> bool:
        """Whether we accept what is natively right, and nothing else."""
        return self.evaluation.correct == (self.verdict == "right")

    @property
    def off(self) -> float | None:
        """How far our speedup is from the native one, relative; None unless both found the candidate right and timed it."""
        ours, native = self.evaluation.speedup, self.native.speedup
        return ours / native - 1 if ours and native and self.agrees and self.evaluation.correct else None

    @property
    def alike(self) -> bool:
        """Whether both sides found about the same time for the reference."""
        ours, native = self.evaluation.reference_us, self.native.reference_us
        return ours is not None and abs(native / ours - 1) <= ALIKE

    @property
    def long(self) -> bool:
        """Whether the candidate is long enough for launches not to matter."""
        return self.native.candidate_us >= LONG_US

    @property
    def close(self) -> bool | None:
        """Whether the speedups agree; None where there are none."""
        return None if self.off is None else abs(self.off) <= (CLOSE_LONG if self.long else CLOSE_SHORT)


def summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Counts: of accepted candidates those that are natively right, and of their speedups those that agree."""
    accepted = [one for one in judged if one.evaluation.correct]
    timed = [one for one in accepted if one.close is not None]
    return {
        "accepted": len(accepted),
        "natively_right": sum(one.verdict == "right" for one in accepted),
        "timed": len(timed),
        "speedups_agree": sum(bool(one.close) for one in timed),
        "disagreements": [f"{one.id}: natively {one.verdict}: {one.native.detail}" for one in accepted if not one.agrees],
    }


def summary_line(found: Mapping[str, Any]) -> str:
    """A summary as one line.

    >>> summary_line({"accepted": 3, "natively_right": 2, "timed": 2, "speedups_agree": 1})
    'native runs: 2 of 3 accepted candidates are right; 1 of 2 speedups agree (within 3 %, below 100 us within 10 %)'
    """
    within = f"within {CLOSE_LONG:.0%}, below {LONG_US:g} us within {CLOSE_SHORT:.0%}".replace("%", " %")
    return (
        f"native runs: {found['natively_right']} of {found['accepted']} accepted candidates are right; "
        f"{found['speedups_agree']} of {found['timed']} speedups agree ({within})"
    )


def table(judged: Sequence[Judged]) -> list[str]:
    """Statuses by what the native run showed."""
    names = [_named(one) for one in judged]
    counts = Counter(zip(names, (one.verdict for one in judged), strict=True))
    statuses = sorted(set(names), key=lambda status: (status != "correct", status))
    lines = [f"| our verdict | {' | '.join(f'natively {name}' for name in VERDICTS)} |", "|---" * (len(VERDICTS) + 1) + "|"]
    lines += [f"| `{status}` | {' | '.join(str(counts[status, name] or '') for name in VERDICTS)} |" for status in statuses]
    right = [one for one in judged if one.verdict == "right"]
    accepted = sum(one.evaluation.correct for one in right)
    unearned = sum(one.evaluation.correct and one.verdict in ("wrong", "raised", "died") for one in judged)
    share = f" ({accepted / len(right):.0%})".replace("%", " %") if right else ""
    return [
        *lines,
        "",
        f"{accepted} of {len(right)} natively right candidates accepted{share}; {unearned} accepted that are not.",
    ]


def _named(one: Judged) -> str:
    """The status, with what it rests on where that is a native run, too."""
    return f"{one.evaluation.status}" if one.evaluation.trust == "traced" else f"{one.evaluation.status}, trust native"


def disagreements(judged: Sequence[Judged]) -> list[str]:
    """The natively right candidates that were refused and the accepted ones that are not right, by cause, most frequent first.

    A cause is our detail without its numbers, so that what fails for one reason stands together.
    """
    causes: dict[tuple[str, str], list[Judged]] = {}
    for one in judged:
        if not one.agrees:
            status = f"natively {one.verdict}, ours `{one.evaluation.status}`"
            causes.setdefault((status, _cause(one)), []).append(one)
    lines = []
    for (status, cause), found in sorted(causes.items(), key=lambda item: -len(item[1])):
        error = max(one.native.error for one in found)
        lines.append(f"- {len(found)} {status} (native error up to {error:.1e}): {cause}")
        lines += [f"    - {one.id}" for one in found]
    return lines or ["- none"]


def _cause(one: Judged) -> str:
    """The detail of whoever refused, without digits and line numbers."""
    detail = one.native.detail if one.evaluation.correct else one.evaluation.detail
    words = " ".join(detail.split()).split(" (")[0]
    return "".join("#" if c.isdigit() else c for c in words)[:160] or "no detail"


def speedups(judged: Sequence[Judged]) -> list[str]:
    """How far our speedups are from native ones, long and short candidates apart, and the worst of them. Those are also counted
    alone whose reference ran alike on both sides."""
    lines = []
    for name, long in ((f"{LONG_US:g} us and more", True), (f"less than {LONG_US:g} us", False)):
        chosen = [(abs(one.off), one) for one in judged if one.off is not None and one.long == long]
        chosen.sort(key=lambda found: -found[0])
        alike = [off for off, one in chosen if one.alike]
        lines.append(f"Candidates of {name}: {_counted([off for off, _ in chosen])}.")
        lines.append(f"Those whose reference ran alike, within {100 * ALIKE:g} %: {_counted(alike)}.")
        lines += [f"- {one.id}: {_both(one)}" for off, one in chosen[:TOLD] if off > CLOSE_LONG]
    return lines


def _counted(off: Sequence[float]) -> str:
    """How many differences there are, and how many are small.

    >>> _counted([0.01, 0.05])
    '2, 1 within 2 %, 1 within 3 %, 2 within 10 %'
    """
    limits = (0.02, CLOSE_LONG, CLOSE_SHORT)
    return ", ".join([str(len(off)), *(f"{sum(one <= limit for one in off)} within {100 * limit:g} %" for limit in limits)])


def _both(one: Judged) -> str:
    ours, native = one.evaluation, one.native
    assert ours.speedup is not None and ours.reference_us is not None and ours.candidate_us is not None
    assert native.speedup is not None
    return (
        f"native {native.speedup:.2f} ({native.reference_us:.0f} -> {native.candidate_us:.0f} us), "
        f"ours {ours.speedup:.2f} ({ours.reference_us:.0f} -> {ours.candidate_us:.0f} us)"
    )
