"""Every command says what it loads before it loads it, and says nothing where nothing is to be loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlkernel.starting import loading
from tests.report.test_compare import write_run

ROOT = Path(__file__).parent.parent
PAIR = ("envs/suite/level2/chain_bias_gelu_scale.py", "tests/red_team/honest/level2/chain_bias_gelu_scale.py")
NO_TORCH = "raise SystemExit('torch is imported')\n"


def without_torch(words: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python` with these words, in a process for which the import of torch is the end."""
    (folder / "torch.py").write_text(NO_TORCH)
    paths = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env={**os.environ, "PYTHONPATH": paths, **environment}, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["-m", "experiments.first_look"], "torch and the experiments"),
        (["-m", "experiments.all", "--list"], "torch and the experiments"),
        (["-m", "experiments.benchmark", "--model", "small"], "torch and the experiments"),
        (["-m", "experiments.cold_start"], "torch and the experiments"),
        (["-m", "examples.rl_loop"], "torch and the example"),
        (["-m", "rlkernel", "evaluate", *PAIR], "torch and what `rlkernel evaluate` needs besides"),
        (["-m", "rlkernel", "doctor"], "torch and what `rlkernel doctor` needs besides"),
    ],
)
def test_a_command_speaks_before_it_imports_torch(words: list[str], what: str, tmp_path: Path) -> None:
    done = without_torch(words, tmp_path)
    said = f"loading {what} (seconds; half a minute where the cores are busy)"
    assert (done.stdout, done.stderr.splitlines()) == ("", [said, "torch is imported"])


def test_of_several_processes_the_first_speaks(tmp_path: Path) -> None:
    assert without_torch(["-m", "experiments.first_look"], tmp_path, RANK="1").stderr == "torch is imported\n"


def test_what_only_parses_words_or_is_imported_by_others_says_nothing(tmp_path: Path) -> None:
    wrong = without_torch(["-m", "rlkernel", "evaluate", "--bogus"], tmp_path)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1) and "--bogus" in wrong.stderr
    assert without_torch(["-m", "rlkernel", "--help"], tmp_path).stderr == ""
    (tmp_path / "mine.py").write_text("import experiments, examples\n")
    assert without_torch([str(tmp_path / "mine.py")], tmp_path).stderr == ""


def test_a_comparison_announces_no_torch_and_loads_none(tmp_path: Path) -> None:
    for arm in ("grpo", "trloo"):
        write_run(tmp_path / arm, arm, 0, {"a": 0.5})
    names = [str(tmp_path / arm) for arm in ("grpo", "trloo")]
    done = without_torch(["-m", "rlkernel", "compare", *names, "--figure", str(tmp_path / "compare.png")], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_loaded_already_is_not_announced(capsys: pytest.CaptureFixture[str]) -> None:
    loading("the system", "sys")
    assert capsys.readouterr().err == ""
    loading("a library", "a_library_that_nobody_has")
    assert capsys.readouterr().err == "loading a library (seconds; half a minute where the cores are busy)\n"
