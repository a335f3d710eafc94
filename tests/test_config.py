"""A run names its algorithm, shows it with every field, and refuses what it could not show or run."""

from __future__ import annotations

import importlib
import json
import linecache
import os
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest

from algorithms import TABLES
from algorithms.dynamic_sampling import DynamicSampling
from algorithms.grpo import GRPO
from algorithms.hrd import HRD
from algorithms.mrs import MRS
from algorithms.pr import PR
from algorithms.prs import PRS
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.config import METHODS, Run, fingerprint, to_json
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import UsageError
from rlkernel.method_code import _sources
from rlkernel.runs import directory as rundir
from rlkernel.types import Problem

PROBLEMS = (Problem("level1/relu", 1, "train", ""),)
BASE = Run("base", PROBLEMS, KernelEnvironment(), SpeedReward(), TRLOO(), UniformCredit())
COMPOSED = replace(BASE, name="all", reward=PR(), advantage=GRPO(ddof=0), corrections=(MRS(), PRS(speedup=1.5)), credit=HRD())


def test_the_manifest_shows_the_algorithm_with_every_field(tmp_path: Path) -> None:
    rundir.begin(tmp_path, COMPOSED)
    shown = json.loads((tmp_path / "manifest.json").read_text())["run"]
    assert shown["advantage"] == {"class": "GRPO", "std": True, "ddof": 0, "eps": 1e-6, "baseline": "turn"}
    speed = {"class": "SpeedReward", "correct_weight": 0.5, "speed_weight": 0.5, "cap": 3.0}
    assert shown["reward"] == {"class": "PR", "inner": speed, "weight": 0.5, "coverage": "time"}
    mrs = {"class": "MRS", "level": "geometric", "low": 0.999, "high": 1.001, "veto": 1e-4, "removes": "loss"}
    assert shown["corrections"][0] == mrs
    assert (shown["corrections"][1]["class"], shown["corrections"][1]["speedup"]) == ("PRS", 1.5)
    assert (shown["credit"]["class"], shown["credit"]["plan"]["class"]) == ("HRD", "LayeredReward")
    assert shown["credit"]["plan"]["inner"]["speed_weight"] == 1.0
    assert shown["gamma"] == 1.0


def variants(value: Any) -> list[Any]:
    """Other values of the type of one field."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value * 1.0001 + 1e-9]
    return STRINGS.get(value, []) if isinstance(value, str) else []


STRINGS = {
    "turn": ["geometric", "trajectory"],
    "geometric": ["token"],
    "time": ["count"],
    "return": ["loss", "zero"],
    "loss": ["return"],
}


METHOD_CLASSES = [cls for classes in TABLES.values() for cls in classes.values()]


@pytest.mark.parametrize("cls", METHOD_CLASSES)
def test_every_field_of_a_method_is_in_its_dump(cls: type) -> None:
    method = cls()
    dumped = to_json(method)
    assert dumped["class"] == cls.__name__
    assert dumped.keys() - {"class"} == {field.name for field in fields(method)}
    for field in fields(method):
        for other in variants(getattr(method, field.name)):
            try:
                changed = replace(method, **{field.name: other})
            except ValueError:  # a word of another method's field
                continue
            assert to_json(changed) != dumped


def test_all_methods_and_their_names_differ_in_the_fingerprint() -> None:
    runs = [replace(BASE, advantage=cls()) for cls in TABLES["advantage"].values()]
    runs += [replace(BASE, reward=cls()) for cls in TABLES["reward"].values() if cls is not SpeedReward]
    runs += [replace(BASE, corrections=(cls(),)) for cls in TABLES["correction"].values()]
    runs += [replace(BASE, credit=HRD()), replace(BASE, gamma=0.5), replace(BASE, corrections=(MRS(), PRS()))]
    assert len({fingerprint(run) for run in runs}) == len(runs)
    # The order of corrections matters for their draws.
    assert fingerprint(replace(BASE, corrections=(PRS(), MRS()))) != fingerprint(replace(BASE, corrections=(MRS(), PRS())))


FORMULA = """
from dataclasses import dataclass
{imports}

@dataclass(frozen=True)
class Mine:
    def __call__(self, returns_GKT, valid_GKT):
        return {formula}
"""


@pytest.mark.parametrize(
    ("mine", "helper", "imports", "formula"),
    [
        ("package.mine", "package.helper", "from {helper} import centre", "centre(returns_GKT)"),
        ("package.mine", "package.helper", "from {package} import helper", "helper.centre(returns_GKT)"),
        ("package.mine", "package.helper", "from . import helper", "helper.centre(returns_GKT)"),
        ("package.mine", "package.helper", "from .helper import FACTOR", "FACTOR * returns_GKT"),
        ("package.inner.mine", "package.helper", "import {helper} as apart", "apart.centre(returns_GKT)"),
        ("package.mine", "package", "from {helper} import FACTOR", "FACTOR * returns_GKT"),
        ("mine_alone", "helper_alone", "import {helper} as helper", "helper.centre(returns_GKT)"),
    ],
)
def test_an_edited_formula_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: str, helper: str, imports: str, formula: str
) -> None:
    """However a method's module takes what it needs from its package, or from a module beside it."""
    own = f"of_{tmp_path.name}"  # no name that another case has imported
    mine, helper = (name.replace("package", own).replace("alone", own) for name in (mine, helper))
    text = FORMULA.format(imports=imports.format(helper=helper, package=own), formula=formula)
    helping = "FACTOR = 2\n\ndef centre(x):\n    return x - x.mean()\n"
    for folder in (own, f"{own}/inner"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    def marked(text: str, helping: str) -> str:
        for name, written in ((mine, text), (helper, helping)):
            place = tmp_path / name.replace(".", "/")
            (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).write_text(written)
        linecache.clearcache()
        for name in [name for name in sys.modules if own in name]:
            sys.modules.pop(name)
        importlib.invalidate_caches()
        return fingerprint(replace(BASE, advantage=importlib.import_module(mine).Mine()))

    first = marked(text, helping)
    assert marked(text, helping) == first
    assert marked(text.replace("return ", "return -"), helping) != first
    assert marked(text, helping.replace("2", "3")) != first, "what the formula is made of counts too"


def test_the_code_of_our_methods_is_in_the_fingerprint_with_what_they_share() -> None:
    """An edit of the statistics of a group, of the ratios, or of the prompt is an edit of every method that is made of it."""

    def text(module: str) -> str:
        return "".join(_sources(module, set()))

    assert "def others_mean" in text("algorithms.trloo") and "def log_rho" in text("algorithms.tis")
    assert "def code_start" in text("algorithms.hrd") and "def coverage_of" in text("algorithms.pr")
    environment = text("rlkernel.environment.kernel_env")
    assert "def extract_code" in environment and "def prompt_source" not in environment
    for name in ("prompt", "feedback", "kernelgym"):
        assert Path(f"rlkernel/environment/{name}.py").read_text() in environment


def test_a_file_that_is_edited_while_it_runs_is_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"edited_{tmp_path.name}"
    file = tmp_path / f"{name}.py"
    file.write_text(FORMULA.format(imports="", formula="returns_GKT"))
    monkeypatch.syspath_prepend(tmp_path)
    run = replace(BASE, advantage=importlib.import_module(name).Mine())
    first = fingerprint(run)
    file.write_text("half a sentence (")
    assert fingerprint(run) == first


@dataclass
class Thawed:
    def __call__(self, returns_GKT: Any, valid_GKT: Any) -> Any:
        return returns_GKT


class A2(Thawed):
    """Its name begins with a vowel."""


@dataclass(frozen=True)
class Incomplete:
    def __call__(self, *args: Any) -> Any:
        return args


@dataclass(frozen=True)
class Elsewhere:
    removes: str = "group"
    needs_ratios: bool = False

    def __call__(self, group: Any, log_ratios_KTL: Any, kept_KTL: Any, generator: Any) -> Any:
        return kept_KTL


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"advantage": TRLOO}, r"Run\.advantage is the class TRLOO: write TRLOO\(\)"),
        ({"corrections": (MRS,)}, r"Run\.corrections is the class MRS: write MRS\(\)"),
        ({"advantage": Thawed()}, r"Run\.advantage is a Thawed: make it a frozen dataclass"),
        ({"reward": lambda evaluation: 0.0}, r"Run\.reward is a function: make it a frozen dataclass"),
        (
            {"credit": Incomplete()},
            r"Run\.credit is Incomplete\(\), which is no Credit: it has no rewards; rlkernel/interfaces.py",
        ),
        (
            {"corrections": (Incomplete(),)},
            r"Run\.corrections is Incomplete\(\), which is no .*: it has no removes, needs_ratios; ",
        ),
        ({"advantage": A2()}, r"Run\.advantage is an A2: make it a frozen dataclass"),
        ({"corrections": MRS()}, r"Run\.corrections is a MRS: it is a tuple, so write \(MRS\(\),\)"),
        (
            {"reward": TRLOO()},
            r"Run\.reward is TRLOO\(.*\), called with \(returns_GKT, valid_GKT\): .* as Reward takes \(evaluation\)",
        ),
        ({"advantage": SpeedReward()}, r"Run\.advantage is SpeedReward\(.* as Advantage takes \(returns_GKT, valid_GKT\)"),
        ({"corrections": (Elsewhere(),)}, r"Elsewhere\.removes is 'group': use one of loss, baseline, return"),
        ({"corrections": [MRS()]}, r"Run\.corrections is a list: it is a tuple, so write \(MRS\(\),\)$"),
        ({"corrections": [MRS(), PRS]}, r"Run\.corrections is a list: it is a tuple, so write \(MRS\(\), PRS\(\)\)$"),
        ({"name": "../../up"}, r"Run\.name is '\.\./\.\./up': it names a directory, so use"),
        ({"name": "a/b"}, r"Run\.name is 'a/b'"),
        ({"name": ".."}, r"Run\.name is '\.\.'"),
        ({"name": ""}, r"Run\.name is ''"),
        ({"name": "a" * 101}, r"Run\.name is 'a+'"),
        ({"name": "a\n"}, r"Run\.name is 'a\\n'"),
        ({"problems": ()}, r"Run\.problems is empty: give at least one"),
        ({"problems": list(PROBLEMS)}, r"Run\.problems is a list: give a tuple"),
        ({"learning_rate": "x"}, r"Run\.learning_rate is 'x': it must be a number"),
        ({"learning_rate": float("nan")}, r"Run\.learning_rate is nan: it must be a number that is not negative"),
        ({"turns": 1.5}, r"Run\.turns is 1\.5: it must be a whole number"),
        ({"turns": True}, r"Run\.turns is True: it must be a whole number"),
        ({"steps": 0}, r"Run\.steps is 0: it must be a whole number of at least 1"),
        ({"advantage": GRPO(std="no")}, r"Run\.advantage\.std is 'no': it must be True or False"),  # type: ignore[arg-type]
        ({"gamma": 1.5}, r"Run\.gamma is 1\.5"),
        ({"seed": -1}, r"Run\.seed is -1: use a number from 0 to 4294967295"),
        ({"temperature": 0.0}, r"Run\.temperature is 0\.0: it must be positive"),
        ({"staleness": -1}, r"Run\.staleness is -1: use 0, or the number"),
        ({"refresh_tokens": -1}, r"Run\.refresh_tokens is -1: use 0, or the tokens sampled"),
        ({"refresh_tokens": 9}, r"Run\.refresh_tokens is 9 and Run\.staleness 0: .* set that to 2 or more"),
        ({"refresh_tokens": 9, "staleness": 1}, r"Run\.refresh_tokens is 9 and Run\.staleness 1: a trajectory spans as many"),
        (
            {"refresh_tokens": 1536, "staleness": 3},
            r"Run\.refresh_tokens is 1536, but a trajectory has at most 1536 .* such as 512",
        ),
        (
            {"refresh_tokens": 9, "staleness": 2, "sampler": DynamicSampling()},
            r"Run\.refresh_tokens is 9, but DynamicSampling draws again",
        ),
        ({"lora_rank": -1}, r"Run\.lora_rank is -1: use 0"),
        ({"lora_alpha": 0.0}, r"Run\.lora_alpha is 0\.0: it must be positive"),
        ({"engine": "fast"}, r"Run\.engine is 'fast': use one of auto, slots, generate"),
    ],
)
def test_what_cannot_be_shown_or_run_is_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        replace(BASE, **changes)
    assert "\n" not in str(refused.value)


def test_the_tables_are_by_field_of_the_run() -> None:
    assert {kind if kind in METHODS else f"{kind}s" for kind in TABLES} == set(METHODS)
    for kind, classes in TABLES.items():
        for cls in classes.values():
            assert isinstance(cls(), METHODS.get(kind) or METHODS[f"{kind}s"])


def test_a_bad_value_in_an_experiments_file_is_one_line(tmp_path: Path) -> None:
    """As `python -m experiments.mine` meets it: while the file is imported."""
    script = tmp_path / "mine.py"
    script.write_text(
        "import experiments\nfrom dataclasses import replace\nfrom tests.test_config import BASE\nreplace(BASE, staleness=-3)\n"
    )
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, script], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == "error: Run.staleness is -3: use 0, or the number of steps that batches are sampled ahead\n"
