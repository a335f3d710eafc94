"""The Makefile's set-up with package indexes that are local directories of empty wheels: which build of torch it installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib import util
from pathlib import Path

import pytest

import rlkernel

ROOT = Path(rlkernel.__file__).parent.parent
VENV = """import sys
from pathlib import Path
import venv
venv.main(["--without-pip", *sys.argv[1:]])
(site,) = Path(sys.argv[-1]).glob("lib/*/site-packages")
(site / "pip").symlink_to({pip!r})
"""
"""Makes a virtual environment with the real pip, without unpacking a copy of it."""

BACKEND = '''"""Builds a package that holds nothing, without a build tool that would have to be installed."""
import os, zipfile
def build_editable(directory, config_settings=None, metadata_directory=None):
    name = "rlkernel-0.1.0-py3-none-any.whl"
    about = "Metadata-Version: 2.1\\nName: rlkernel\\nVersion: 0.1.0\\nProvides-Extra: dev\\nRequires-Dist: torch>=2.11\\n"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("rlkernel-0.1.0.dist-info/METADATA", about)
        wheel.writestr("rlkernel-0.1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("rlkernel-0.1.0.dist-info/RECORD", "")
    return name
'''


def index(directory: Path, versions: Sequence[str]) -> str:
    """The address of a package index that has these versions of torch, all of them empty."""
    folder = directory / "torch"
    folder.mkdir(parents=True)
    names = [f"torch-{version}-py3-none-any.whl" for version in versions]
    for name, version in zip(names, versions, strict=True):
        with zipfile.ZipFile(folder / name, "w") as wheel:
            wheel.writestr(f"torch-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
            wheel.writestr(f"torch-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"torch-{version}.dist-info/RECORD", "")
    (folder / "index.html").write_text("".join(f'<a href="{name.replace("+", "%2B")}">{name}</a>' for name in names))
    return directory.as_uri()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The Makefile and the constraints, beside a package that is built without any tool."""
    directory = tmp_path / "checkout"
    directory.mkdir()
    for name in ("Makefile", "constraints.txt"):
        shutil.copy(ROOT / name, directory)
    (directory / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "rlkernel"\n'
        'version = "0.1.0"\n'
    )
    (directory / "backend.py").write_text(BACKEND)
    return directory


def make(checkout: Path, default_index: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`make setup` on a machine without a GPU, whose pip knows one index."""
    found = util.find_spec("pip")
    if found is None or found.origin is None:
        pytest.skip("set-up tests (a virtual environment that has pip)")
    script = checkout / "make_venv.py"
    script.write_text(VENV.format(pip=str(Path(found.origin).parent)))
    made = subprocess.run([sys.executable, script, checkout / ".venv"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "MAKE", "MFLAGS", "TORCH"))}
    pip = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": default_index,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_RETRIES": "0",
    }
    return subprocess.run(
        ["make", "setup", "HAS_GPU=", "UV=", f"PYTHON={sys.executable}", *arguments],
        cwd=checkout,
        env={**kept, **pip},
        capture_output=True,
        text=True,
    )


def installed(checkout: Path) -> list[str]:
    return sorted(path.name for path in checkout.glob(".venv/lib/*/site-packages/*.dist-info"))


BOTH = ("2.13.0", "2.13.0+cpu")
linux = pytest.mark.skipif(sys.platform != "linux", reason="set-up tests (Linux)")


@linux
@pytest.mark.parametrize(
    ("offered", "asked", "version"),
    [(BOTH, ["torch==2.13.0+cpu"], "2.13.0+cpu"), (["2.13.0"], ["torch==2.13.0+cpu", "torch==2.13.0"], "2.13.0")],
    ids=["pip knows the build for CPUs", "pip knows the default build alone"],
)
def test_set_up_goes_on_with_the_default_build(checkout: Path, offered: Sequence[str], asked: list[str], version: str) -> None:
    done = make(checkout, index(checkout.parent / "index", offered))
    assert done.returncode == 0, done.stderr
    said = [f"installing {torch} into .venv" for torch in asked]
    assert [line for line in done.stdout.splitlines() if "torch" in line and "cannot" not in line] == said
    assert installed(checkout) == ["rlkernel-0.1.0.dist-info", f"torch-{version}.dist-info"]
    assert (checkout / ".venv" / ".installed-dev").exists()


@linux
def test_a_named_index_is_asked_too_and_its_build_is_installed(checkout: Path) -> None:
    default, named = index(checkout.parent / "index", ["2.13.0"]), index(checkout.parent / "named", ["2.13.0+cpu"])
    done = make(checkout, default, f"TORCH_INDEX={named}")
    assert done.returncode == 0, done.stderr
    assert installed(checkout) == ["rlkernel-0.1.0.dist-info", "torch-2.13.0+cpu.dist-info"]


@linux
@pytest.mark.parametrize("named", [True, False])
def test_no_build_at_all_is_an_error_that_says_what_to_do(checkout: Path, named: bool) -> None:
    # Who names an index for the small build does not get the large one instead.
    default = index(checkout.parent / "index", ["2.13.0"] if named else ["2.11.0"])
    done = make(checkout, default, *([f"TORCH_INDEX={index(checkout.parent / 'named', [])}"] if named else []))
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1] == f"pip cannot install torch==2.13.0{'+cpu' if named else ''} here"
    assert "torch could not be installed. If pip did not find it, name an index that has it" in done.stderr
    assert installed(checkout) == [] and not (checkout / ".venv" / ".installed-dev").exists()


@linux
def test_pip_goes_on_where_uv_does_not_find_a_package(checkout: Path) -> None:
    uv = checkout / "uv"
    uv.write_text("#!/bin/sh\necho asked >> uv.log\nexit 1\n")
    uv.chmod(0o755)
    done = make(checkout, index(checkout.parent / "index", ["2.13.0"]), f"UV={uv}", "TORCH=torch==2.13.0")
    assert done.returncode == 0, done.stderr
    assert (checkout / "uv.log").read_text() == "asked\n" * 3  # torch, rlkernel, what the tests need
    assert installed(checkout) == ["rlkernel-0.1.0.dist-info", "torch-2.13.0.dist-info"]
