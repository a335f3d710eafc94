"""What is wrong in a file that is configuration is told in one line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from rlkernel.errors import misspelt_field, tell_usage_errors


@pytest.fixture(autouse=True)
def hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the import of `experiments` makes, whatever other libraries have made of it since."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    tell_usage_errors()


HEAD = "from dataclasses import replace\nfrom algorithms.grpo import GRPO\nfrom experiments import arms\n"


def error_of(line: str, name: str = "__main__", home: str = "experiments/mine.py") -> BaseException:
    """What the fourth line of a file raises."""
    source = compile(HEAD + line, str(Path.cwd() / home), "exec")
    scope: dict[str, Any] = {"__name__": name}
    with pytest.raises((TypeError, ValueError)) as raised:
        exec(source, scope)
    return raised.value


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("replace(arms.GRPO_ARM, stalenes=1)", "Run has no field 'stalenes': did you mean staleness?"),
        ("replace(arms.GRPO_ARM, advantage=GRPO(mean=1))", "GRPO has no field 'mean': it has std, ddof, eps, baseline"),
    ],
)
def test_a_field_that_does_not_exist_is_named_with_file_and_line(
    line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = error_of(line)
    with pytest.raises(SystemExit) as stopped:
        sys.excepthook(type(error), error, error.__traceback__)
    assert stopped.value.code == 2
    assert capsys.readouterr() == ("", f"error: experiments/mine.py, line 4: {told}\n")


def test_other_errors_keep_their_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert misspelt_field(error_of("int(x=1)")) is None
    assert misspelt_field(error_of("GRPO(eps=1, mean=2)", name="rlkernel.mine")) is None  # rlkernel's own mistake
    error = error_of("int('x')")
    sys.excepthook(type(error), error, error.__traceback__)
    assert "Traceback" in capsys.readouterr().err
