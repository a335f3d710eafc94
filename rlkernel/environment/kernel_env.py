"""`KernelEnvironment`: what a problem looks like to the policy. It is made of prompt, extraction and feedback."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rlkernel.environment import feedback, kernelgym, prompt
from rlkernel.environment.extract import extract_code
from rlkernel.errors import UsageError
from rlkernel.types import Evaluation, Problem

OWN_PROMPT = ("given", "kernelgym")
"""The styles whose prompt is the problem's own."""


@dataclass(frozen=True)
class KernelEnvironment:
    """Implements `rlkernel.interfaces.Environment`."""

    style: Literal["short", "full", "given", "kernelgym"] = "short"
    """`short` fits a small model's context; `full` has complete instructions for pretrained models. `given` has the prompt that
    came with the problem, unchanged, and the feedback of `full`. `kernelgym` has that prompt too, and feedback in the form of
    KernelGYM, which published checkpoints were trained on."""
    answers: Literal["ours", "kernelgym"] = "ours"
    """How the code is found in an answer. `kernelgym`: as its reward does, the last fenced block whatever it holds, and thoughts
    count as text."""

    def prompt(self, problem: Problem) -> str:
        """The first user message. Raises UsageError where the style is for problems with a prompt, and this one has none."""
        if self.style in OWN_PROMPT:
            self.check((problem,))
            return problem.prompt
        return prompt.prompt_text(problem, prompt.SHORT if self.style == "short" else prompt.FULL)

    def extract(self, completion: str) -> str | None:
        return extract_code(completion) if self.answers == "ours" else kernelgym.extract_code(completion)

    def feedback(self, evaluation: Evaluation) -> str:
        if self.style == "kernelgym":
            return kernelgym.feedback_text(evaluation)
        return feedback.feedback_text(evaluation, feedback.SHORT if self.style == "short" else feedback.FULL)

    def check(self, problems: Iterable[Problem]) -> None:
        """Raise UsageError for the first problem that the style cannot show."""
        if self.style in OWN_PROMPT:
            for problem in problems:
                if not problem.prompt:
                    raise UsageError(f"{problem.name} has no prompt of its own, which the style {self.style!r} shows: use full")
