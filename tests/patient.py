"""How tests judge what ends by itself: with limits that a busy machine does not reach, because no verdict may depend on it."""

from __future__ import annotations

from rlkernel.evaluator.config import EvaluatorConfig, Limits

PATIENT = EvaluatorConfig(limits=Limits(trace_seconds=120, compile_seconds=300, run_seconds=120, oracle_seconds=600))
