"""`KernelEnvironment`: what a problem looks like to the policy. It is made of prompt, extraction and feedback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlkernel.environment import feedback, prompt
from rlkernel.environment.extract import extract_code
from rlkernel.types import Evaluation, Problem


@dataclass(frozen=True)
class KernelEnvironment:
    """Implements `rlkernel.interfaces.Environment`."""

    style: Literal["short", "full"] = "short"
    """`short` fits a small model's context; `full` has complete instructions for pretrained models."""

    def prompt(self, problem: Problem) -> str:
        return prompt.prompt_text(problem, prompt.SHORT if self.style == "short" else prompt.FULL)

    def extract(self, completion: str) -> str | None:
        return extract_code(completion)

    def feedback(self, evaluation: Evaluation) -> str:
        return feedback.feedback_text(evaluation, feedback.SHORT if self.style == "short" else feedback.FULL)
