"""The shipped suite and the loader of KernelBench's layout."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import torch

from envs import problems
from envs.chains import names_of, parse
from envs.problems import SuiteError, family_of, load_directory, load_suite
from rlkernel.reference import load_reference
from rlkernel.types import Problem

PROBLEM = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [torch.randn(3)]
def get_init_inputs():
    return []
"""


def test_the_suite_has_three_levels_and_many_chains() -> None:
    suite = load_suite()
    levels = Counter(problem.level for problem in suite)
    assert len(suite) >= 60
    assert levels[1] >= 30 and levels[2] >= 40 and levels[3] >= 12
    chains = [problem for problem in suite if family_of(problem) == "chain"]
    assert 0.4 <= len(chains) / len(suite) <= 0.6


def test_about_a_quarter_of_each_level_and_family_is_validation() -> None:
    for group in (lambda problem: str(problem.level), family_of):
        counts: Counter[tuple[str, str]] = Counter((group(problem), problem.split) for problem in load_suite())
        for key in {key for key, _ in counts}:
            share = counts[key, "validation"] / (counts[key, "validation"] + counts[key, "train"])
            assert 0.15 <= share <= 0.35, key


def test_every_chain_reads_back_as_a_chain_and_no_two_are_alike() -> None:
    chains = [problem for problem in load_suite() if family_of(problem) == "chain"]
    names = []
    for problem in chains:
        steps = parse(problem.source)
        assert steps is not None, problem.name
        names.append(names_of(steps))
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("problem", load_suite(), ids=lambda problem: problem.name)
def test_every_problem_has_one_short_canonical_file(problem: Problem) -> None:
    lines = problem.source.splitlines()
    assert lines[0].startswith('"""') and lines[0].endswith('."""')
    assert lines[1:4] == ["import torch", "import torch.nn as nn", "import torch.nn.functional as F"]
    assert sum(line.startswith("SMALL = {") for line in lines) == 1
    assert len(problem.source) <= 1400


@pytest.mark.parametrize("problem", load_suite(), ids=lambda problem: problem.name)
def test_small_inputs_are_small_and_full_ones_keep_a_gpu_busy(problem: Problem) -> None:
    small = load_reference(problem.source, small=True, name=problem.name)
    assert sum(x.numel() for x in small.inputs(0) if isinstance(x, torch.Tensor)) <= 8192
    with torch.device("meta"):  # full shapes, no memory
        full = load_reference(problem.source, small=False, name=problem.name)
        tensors = [*(x for x in full.inputs(0) if isinstance(x, torch.Tensor)), *full.model(0).parameters()]
    megabytes = sum(x.numel() * x.element_size() for x in tensors) / 2**20
    assert 4 <= megabytes <= 512


def test_kernelbench_layout_is_read_in_numeric_order(tmp_path: Path) -> None:
    for name in ("level1/10_a.py", "level1/2_b.py", "level2/1_c.py", "level1/notes.txt", "level1/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(PROBLEM)
    loaded = load_directory(tmp_path)
    assert [(problem.name, problem.level) for problem in loaded] == [("level1/2_b", 1), ("level1/10_a", 1), ("level2/1_c", 2)]
    assert loaded[0].source == PROBLEM
    assert load_directory(str(tmp_path)) == loaded


def test_files_directly_in_the_directory_take_its_level(tmp_path: Path) -> None:
    (tmp_path / "level3").mkdir()
    (tmp_path / "level3" / "b.py").write_text("\ufeff" + PROBLEM)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.py").write_text(PROBLEM)
    assert [(problem.name, problem.level) for problem in load_directory(tmp_path / "level3")] == [("level3/b", 3)]
    assert [(problem.name, problem.level) for problem in load_directory(tmp_path / "plain")] == [("level1/a", 1)]


def test_the_split_of_a_directory_is_stable_and_near_a_quarter(tmp_path: Path) -> None:
    for index in range(200):
        (tmp_path / f"{index}_p.py").write_text(PROBLEM)
    splits = {problem.name: problem.split for problem in load_directory(tmp_path)}
    assert 30 <= sum(split == "validation" for split in splits.values()) <= 70  # 50 expected, sd 6
    (tmp_path / "7_p.py").unlink()
    assert {problem.name: problem.split for problem in load_directory(tmp_path)} == {
        name: split for name, split in splits.items() if name != "level1/7_p"
    }


def test_bad_directories_and_files_are_one_clear_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(SuiteError) as caught:
        load_directory(missing)
    assert (
        str(caught.value)
        == f"{missing}: there is no such file or directory; give a directory that holds level1/*.py or problem files"
    )
    with pytest.raises(SuiteError) as caught:
        load_directory(tmp_path)
    assert str(caught.value) == f"{tmp_path}: no problems in it; expected level1/*.py, level2/*.py, ... or *.py files"
    file = tmp_path / "1_x.py"
    for text, message in (
        (PROBLEM.replace("def get_inputs", "def inputs"), "it defines no get_inputs; a problem has Model, get_inputs, and"),
        ("def f(:\n", "not a Python file: invalid syntax"),
        ("x = '\x00'", "not a Python file: source code string cannot contain null bytes"),
    ):
        file.write_text(text)
        with pytest.raises(SuiteError) as caught:
            load_directory(tmp_path)
        assert str(caught.value).startswith(f"{file}: {message}")
        assert "\n" not in str(caught.value)


def test_a_file_missing_from_the_split_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = json.loads(problems.SPLIT.read_text())
    table["chain"]["train"].remove("level2/chain_bias_relu")
    (tmp_path / "split.json").write_text(json.dumps(table))
    monkeypatch.setattr(problems, "SPLIT", tmp_path / "split.json")
    with pytest.raises(SuiteError, match="level2/chain_bias_relu is in the table or on disk but not in both"):
        load_suite.__wrapped__()
