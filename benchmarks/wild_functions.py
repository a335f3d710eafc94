"""Tasks that are a function and its test, as references: the test's first call gives the inputs of a `Model`.

A file of TritonBench's part T holds the function, a line of #, and a test such as

    a = torch.randn(3, 3, device='cuda')
    results["test_case_1"] = solve(a, upper=True)

The `Model` calls the function with the tensors as arguments of its forward, and `get_inputs` holds the lines before the call. A
test whose arguments are not plain names of tensors and constants makes no task.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

MODULE = """

class {name}(torch.nn.Module):
    def forward(self, {tensors}):
        return {call}
"""
INPUTS = """

def get_inputs():
{lines}
    return [{tensors}]


def get_init_inputs():
    return []
"""


@dataclass(frozen=True, slots=True)
class Task:
    """A function that answers are to replace."""

    function: str
    reference: str
    """The file in KernelBench's format."""
    tensors: str
    """The names of forward's arguments, with commas."""
    call: str
    """The call of the function."""

    def candidate(self, answer: str) -> str | None:
        """An answer as a `ModelNew`; None if it does not define the function."""
        if not re.search(rf"^def {re.escape(self.function)}\(", answer, re.MULTILINE):
            return None
        return "import torch\n" + answer + MODULE.format(name="ModelNew", tensors=self.tensors, call=self.call)


def task_of(text: str) -> Task | None:
    """The task of a file; None where its test has no call that can be taken out."""
    function_text, _, test_text = text.partition("#" * 80)
    try:
        defined = [node for node in ast.parse(function_text).body if isinstance(node, ast.FunctionDef)]
        tests = [node for node in ast.parse(test_text.lstrip("#")).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError:
        return None
    if not defined or not tests:
        return None
    name, before = defined[-1].name, list[ast.stmt]()
    for statement in tests[-1].body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
            called = statement.value
            if not (isinstance(called, ast.Call) and isinstance(called.func, ast.Name) and called.func.id == name):
                return None
            return _task(name, function_text, before, called)
        before.append(statement)
    return None


def _task(name: str, function_text: str, before: list[ast.stmt], called: ast.Call) -> Task | None:
    lines = [line for line in before if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)]
    names = [line.targets[0].id for line in lines if isinstance(line.value, ast.Call) and isinstance(line.targets[0], ast.Name)]
    values = [*called.args, *(keyword.value for keyword in called.keywords)]
    used = [value.id for value in values if isinstance(value, ast.Name)]
    tensors = [used_name for used_name in dict.fromkeys(used) if used_name in names]
    if not tensors or len(tensors) < len(set(used)) or any(not _plain(value) for value in values):
        return None
    arguments, call = ", ".join(tensors), ast.unparse(called)
    drawn = "\n".join(f"    {ast.unparse(line)}" for line in lines if _called(line, "results") is None)
    reference = (
        "import torch\n"
        + function_text
        + MODULE.format(name="Model", tensors=arguments, call=call)
        + INPUTS.format(lines=drawn, tensors=arguments)
    )
    return Task(name, reference, arguments, call)


def _called(line: ast.Assign, name: str) -> str | None:
    """The target's name where it is `name`."""
    target = line.targets[0]
    return name if isinstance(target, ast.Name) and target.id == name else None


def _plain(value: ast.expr) -> bool:
    """Whether an argument is a name or made of constants."""
    if isinstance(value, ast.Name):
        return True
    return not any(isinstance(node, (ast.Name, ast.Call)) for node in ast.walk(value))
