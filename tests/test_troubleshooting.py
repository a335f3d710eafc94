"""Every message of the page is one that the code prints: its words stand in the sources, and the commonest are provoked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlkernel
from experiments import multi_turn_estimators
from rlkernel import cli, doctor
from rlkernel import experiment as experiments
from rlkernel.evaluator import gpus, sandbox
from rlkernel.evaluator.gpus import GpuUnavailable

ROOT = Path(rlkernel.__file__).parent.parent
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = [line for block in re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) for line in block.splitlines()]
LITERAL = 20
"""Characters of a message that must stand in one text of the sources."""


def templates(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """The literal parts of every text of a module: f-strings in pieces, adjacent texts joined as Python joins them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield tuple(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield (node.value,)


def sources() -> list[tuple[str, ...]]:
    files = [path for package in ("rlkernel", "experiments", "envs") for path in (ROOT / package).rglob("*.py")]
    found = [pieces for path in files for pieces in templates(ast.parse(path.read_text(encoding="utf-8")))]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    # The first sentence; what make puts in is a piece that differs.
    told = [
        tuple(re.split(r"\$\([A-Z]+\)", text.split(": ")[0].split(". ")[0])) for text in re.findall(r'echo "([^"]*)"', makefile)
    ]
    return [pieces for pieces in (*found, *told) if sum(map(len, pieces)) >= LITERAL]


TEMPLATES = sources()


def explains(message: str, pieces: tuple[str, ...]) -> bool:
    """Whether the pieces stand in the message in order, and are most of it apart from what differs."""
    words = [piece.strip() for piece in pieces if len(piece.strip()) > 1]
    pattern = ".*".join(map(re.escape, words))
    return sum(map(len, words)) >= LITERAL and re.search(pattern, message) is not None


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_are_those_of_the_code(message: str) -> None:
    assert any(explains(message, pieces) for pieces in TEMPLATES)


def matches(printed: str) -> bool:
    """Whether a line of the page stands for what was printed; `<so>` stands for anything."""
    patterns = (".+".join(map(re.escape, re.split(r"<[^>]+>", message))) for message in MESSAGES)
    return any(re.match(pattern, printed) for pattern in patterns)


def test_a_message_that_nobody_prints_would_be_found() -> None:
    assert not any(explains("error: the moon is in the way of <card>", pieces) for pieces in TEMPLATES)
    assert not matches("error: the moon is in the way of cuda:0")


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpus, "find", tuple)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert cli.main(["evaluate", "a.py", "b.py", "--device", "cuda"]) == 2
    assert matches(capsys.readouterr().err)
    argv = ["--preset", "h200", "--out", str(tmp_path)]
    assert experiments.main(multi_turn_estimators.EXPERIMENT, argv) == 2
    assert matches(capsys.readouterr().err)


def test_a_driver_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def find() -> None:
        raise GpuUnavailable("the NVIDIA driver does not answer: Driver/library version mismatch")

    monkeypatch.setattr(gpus, "find", find)
    assert cli.main(["evaluate", "a.py", "b.py"]) == 2
    assert matches(capsys.readouterr().err)


@pytest.mark.parametrize("level", [sandbox.Level(True, 0), sandbox.Level(False, 0)])
def test_a_machine_without_all_layers(level: sandbox.Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "level", lambda: level)
    (row,) = [row for row in doctor.findings() if row.what == "sandbox"]
    assert matches(row.meaning)
