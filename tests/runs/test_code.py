"""Which edits of the training code are told, and which are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlkernel.runs.code import changed, digests, warning

LOSS = '''"""A loss."""

CLIP = 0.2
"""The bound."""


def loss(ratio: float) -> float:
    """Clip the ratio."""
    return min(ratio, 1 + CLIP)  # from above
'''


def package(directory: Path, text: str) -> Path:
    (directory / "training").mkdir(parents=True)
    (directory / "training" / "loss.py").write_text(text)
    (directory / "rollout.py").write_text("K = 4\n")
    return directory


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("# from above", "# so that it does not grow", False),
        ('"""Clip the ratio."""', '"""Clip the ratio of a token."""', False),
        ('    """Clip the ratio."""\n', "", False),
        ('"""The bound."""', '"""The bound above 1."""', False),
        ("min(ratio, 1 + CLIP)", "min(ratio, (1 + CLIP))", False),
        ("1 + CLIP", "1 - CLIP", True),
        ("CLIP = 0.2", "CLIP = 0.28", True),
        ("return min(ratio, 1 + CLIP)", 'return "Clip the ratio."', True),
    ],
)
def test_code_is_told_and_words_are_not(before: str, after: str, told: bool, tmp_path: Path) -> None:
    assert before in LOSS
    old, new = package(tmp_path / "old", LOSS), package(tmp_path / "new", LOSS.replace(before, after))
    assert changed(digests(old), new) == (("training/loss.py",) if told else ())


def test_files_that_are_new_or_gone_are_told(tmp_path: Path) -> None:
    old = package(tmp_path / "old", LOSS)
    (old / "training" / "other.py").write_text("")
    new = package(tmp_path / "new", LOSS)
    (new / "uniform.py").write_text("")
    assert changed(digests(old), new) == ("training/other.py", "uniform.py")
    assert changed(None, new) == ()


def test_digests_of_another_python_tell_nothing(tmp_path: Path) -> None:
    """The same function has another tree in Python 3.12, which has type parameters."""
    old, new = package(tmp_path / "old", LOSS), package(tmp_path / "new", LOSS + "CLIP = 0.3\n")
    assert changed({**digests(old), "python": "3.0"}, new) == ()
    assert changed(digests(old), new) == ("training/loss.py",)


def test_what_makes_the_numbers_of_a_step_is_covered() -> None:
    assert set(digests()) >= {
        *(f"training/{name}.py" for name in ("trainer", "loss_trainer", "batch", "minibatches", "returns", "packing")),
        *("policy/hf.py", "policy/replica.py", "policy/slots/decoding.py", "rollout.py", "settings.py", "uniform.py"),
    }
    assert changed(digests()) == ()


def test_many_files_are_named_in_one_line() -> None:
    told = warning(tuple("abcdef"), Path("runs/x"), goes_on=False)
    assert told == (
        "warning: runs/x was trained by other code than is here now (a, b, c, d and 2 more of rlkernel): delete it to train anew"
    )
