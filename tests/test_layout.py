"""The checkout's layout: whose packages are imported, what the wheel holds, what committed files must not say."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import rlkernel

ROOT = Path(rlkernel.__file__).parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PLACES = re.compile("/" + "(home|root|work|Users)" + r"/\w|[a-z]:\\\\Users", re.IGNORECASE)
REGISTRIES = re.compile(r"pypi\.\w+/|files\.pythonhosted|download\.py" + "torch")


def committed() -> list[Path]:
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("checkout tests (a git checkout)")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("package", ["algorithms", "envs", "experiments"])
def test_packages_with_common_names_are_the_ones_of_this_checkout(package: str) -> None:
    # Packages called `algorithms` and `envs` can be installed from elsewhere and would shadow ours.
    assert Path(__import__(package).__file__ or "").parent == ROOT / package


@pytest.mark.parametrize("package", ["rlkernel", "algorithms", "envs", "experiments"])
def test_packages_say_that_they_are_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_tests_are_no_package() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_wheel_holds_rlkernel_and_its_plugin_alone_with_all_their_files(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names} == {"rlkernel", "rlkernel_verifiers.py", f"rlkernel-{VERSION}.dist-info"}
    sources = {str(file.relative_to(ROOT)) for file in committed() if file.is_relative_to(ROOT / "rlkernel")}
    assert sources - names == set()


def test_constraints_name_what_is_installed() -> None:
    """A test run with other versions than the constrained ones would say nothing about them."""
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#"))
    for name in ("torch", "triton", "trl", "transformers", "anyio", "numpy"):
        assert importlib.metadata.version(name).split("+")[0] == pinned[name], name


def test_no_committed_file_names_a_place_on_some_machine_or_a_package_registry() -> None:
    found = []
    for file in committed():
        text = file.read_bytes().decode("utf-8", errors="ignore")
        found += [f"{file.relative_to(ROOT)}: {match[0]}" for match in (PLACES.search(text), REGISTRIES.search(text)) if match]
    assert found == []


@pytest.mark.parametrize("page", ["README.md", "docs/papers.md", "docs/metrics.md", "docs/log.md"])
def test_files_that_the_documents_name_exist(page: str) -> None:
    named = re.findall(r"`((?:rlkernel|algorithms|envs|experiments|tests|docs|benchmarks)/[\w./-]+)`", (ROOT / page).read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []
