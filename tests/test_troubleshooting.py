"""Every message of the page is one that the code prints: its words stand in the sources, and the commonest are provoked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import rlkernel
from experiments import multi_turn_estimators
from rlkernel.commands import cli, doctor
from rlkernel.commands import experiment as experiments
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.gpus import GpuUnavailable
from rlkernel.evaluator.processes import sandbox

ROOT = Path(rlkernel.__file__).parent.parent
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = [line for block in re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) for line in block.splitlines()]
LITERAL = 16
"""Characters of a message that must stand in one text of the sources."""

NAMES = (
    r"<[^>]+>|^error: |--device: |Run.device or Run.jobs: |'\w+'|cuda:0|torch==\S+|runs/policy|`[^`]+`|h200, a100"
    r"|measured and modelled"
)
"""What differs from machine to machine, and the names of flags that other texts put before a message."""


def templates(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """The literal parts of every text of a module: f-strings in pieces, adjacent texts joined as Python joins them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield tuple(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield (node.value,)


@cache
def sources() -> list[re.Pattern[str]]:
    """A pattern for each text of at least `LITERAL` characters: its literal parts are groups."""
    files = [path for package in ("rlkernel", "experiments", "envs") for path in (ROOT / package).rglob("*.py")]
    found = [pieces for path in files for pieces in templates(ast.parse(path.read_text(encoding="utf-8")))]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    # The first sentence; what make puts in is a piece that differs.
    told = [
        tuple(re.split(r"\$\([A-Z]+\)", text.split(": ")[0].split(". ")[0])) for text in re.findall(r'echo "([^"]*)"', makefile)
    ]
    texts = {tuple(word for word in map(str.strip, pieces) if len(word) > 1) for pieces in (*found, *told)}
    return [re.compile(".*?".join(f"({re.escape(word)})" for word in words)) for words in texts if len("".join(words)) >= LITERAL]


def explained(message: str) -> float:
    """Share of a message's own characters, without those of `<so>` and of names, that texts of the sources print."""
    covered: set[int] = set()
    for template in sources():
        if (found := template.search(message)) is not None:
            covered |= {i for group in range(1, template.groups + 1) for i in range(*found.span(group))}
    varying = {i for name in re.finditer(NAMES, message) for i in range(*name.span())}
    own = {i for i, letter in enumerate(message) if letter.isalnum()} - varying
    return len(own & covered) / len(own)


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_are_those_of_the_code(message: str) -> None:
    assert explained(message) >= 0.85


def matches(printed: str) -> bool:
    """Whether a line of the page stands for what was printed; `<so>` stands for anything."""
    patterns = (".+".join(map(re.escape, re.split(r"<[^>]+>", message))) for message in MESSAGES)
    return any(re.match(pattern, printed) for pattern in patterns)


def test_a_message_that_nobody_prints_would_be_found() -> None:
    assert explained("error: the moon is in the way of <card>") < 0.5
    assert explained("error: <n> positions take <a> GiB of keys and values: buy a larger card for the policy") < 0.75
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


def test_what_the_doctor_says_of_torch_and_of_a_card_that_is_not_idle() -> None:
    assert doctor.torch_build(None, "13.0").found == "none: a CPU build"
    assert "the driver is too old" in doctor.torch_build("14.0", "13.0").meaning
    reading = gpus.Reading(0.0, None, None, None, None, (), None, None, ((1, 5 << 20),), 9)
    assert gpus.busy(reading, ()) == "process 1 holds 5 MiB; kernels ran 9 % of the last second"
    told = ("none: a CPU build", "the driver is too old", "process <pid> holds <n> MiB", "kernels ran <n> % of the last second")
    assert all(f"`{text}`" in PAGE for text in told)
    slowed = {"power cap", "hardware slowdown", "thermal slowdown"}
    assert slowed <= {name.split(" (")[0] for name in gpus.THROTTLES.values()} and all(f"`{name}`" in PAGE for name in slowed)
