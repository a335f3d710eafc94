"""The form in which KernelGYM (arXiv 2602.05885) tells a policy of its candidate, and finds the code in an answer.

Its feedback is the whole result of an evaluation as JSON, indented by 2, between a line before and a request after it. The keys
are those of its public code (commit 3a84417); the words around them are ours. The values are our evaluator's: what our judgement
does not know is null, as theirs is where it was not measured. Times are in milliseconds there.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rlkernel.environment.feedback import escape
from rlkernel.metrics import is_hack
from rlkernel.types import Evaluation, Status

FRAME = """The server has evaluated your last implementation. Use its feedback and all of your previous answers to improve it.

Server feedback (status/metrics/errors):
{feedback}

Return an improved Triton implementation named `ModelNew` as one complete ```python``` block. Think step by step.
"""
DETAIL = 4000
"""The most characters of an error message; the public code has no limit, and tracebacks fill contexts."""
NOT_RUN = (Status.NO_CODE, Status.INVALID, Status.COMPILE_ERROR, Status.UNTRACEABLE)
"""The statuses under which nothing was executed, so that `compiled` is false."""
_MARKED = (
    re.compile(r"# Kernel Implementation\s*\n(.*?)(?=# End|$)", re.DOTALL),
    re.compile(r"```python\s*# Kernel\s*\n(.*?)```", re.DOTALL),
    re.compile(r"# Your implementation:\s*\n(.*?)(?=# End|$)", re.DOTALL),
    re.compile(r"# Generated kernel:\s*\n(.*?)(?=# End|$)", re.DOTALL),
)
"""The headings after which the public code takes what follows, before it looks for fences."""
_FENCED = re.compile(r"```(?:\w+)?\s*\n?(.*?)```", re.DOTALL)


def feedback_text(evaluation: Evaluation) -> str:
    """The evaluation as JSON in its frame. What a candidate can influence is escaped, so that it forms no fence and no token."""
    return FRAME.replace("{feedback}", json.dumps(state(evaluation), ensure_ascii=False, indent=2))


def state(evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation under the public code's keys."""
    failed = evaluation.status is Status.TIMEOUT or evaluation.status is Status.CRASH
    detail = "" if evaluation.correct else escape(evaluation.detail, DETAIL)
    return {
        "status": "failed" if failed else "completed",
        "compiled": evaluation.status not in NOT_RUN,
        "correctness": evaluation.correct,
        "decoy_kernel": is_hack(evaluation),
        "reference_runtime": _milliseconds(evaluation.reference_us),
        "kernel_runtime": _milliseconds(evaluation.candidate_us, missing=-1.0),
        "speedup": round(evaluation.speedup, 4) if evaluation.correct and evaluation.speedup is not None else 0.0,
        "metadata": {"status": str(evaluation.status), "runtime_error": detail or None, "backend": "triton"},
        "error_message": detail or None,
        "time_coverage": None if evaluation.coverage is None else round(evaluation.coverage, 4),
        "success": evaluation.correct,
        "profiling": _profile(evaluation),
    }


def _profile(evaluation: Evaluation) -> dict[str, Any] | None:
    """The steps of the candidate, the costliest first; None where nothing was timed."""
    rows = [(fact.kernel, fact.us, fact.calls) for fact in evaluation.launches]
    rows += [(fact.op, fact.us, fact.calls) for fact in evaluation.ops]
    if evaluation.candidate_us is None or not rows:
        return None
    rows.sort(key=lambda row: -row[1])
    kernels = [{"name": escape(name, 200), "cuda_time_us": round(us, 3), "count": calls} for name, us, calls in rows]
    return {"cuda_kernels": kernels, "total_cuda_time_us": round(sum(us for _, us, _ in rows), 3)}


def _milliseconds(us: float | None, missing: float = 0.0) -> float:
    return missing if us is None else round(us / 1000, 6)


def extract_code(completion: str) -> str | None:
    """The code as KernelGYM's reward finds it: after a heading of its own, else the last closed fence, else all of the answer.

    Its server then wants `class ModelNew` in the text; an answer without is None here.

    >>> extract_code("<think>```python\\nclass ModelNew: old\\n```</think>```\\nclass ModelNew: new\\n```")
    'class ModelNew: new\\n'
    """
    marked = next((found for pattern in _MARKED if (found := pattern.search(completion))), None)
    if marked is not None:
        code = marked[1]
    else:
        fenced: list[str] = _FENCED.findall(completion)
        code = fenced[-1] if fenced else completion
    return code.strip() + "\n" if "class ModelNew" in code else None
