"""Python commands as forks of one process that has imported the libraries: each costs what it does, not five seconds of imports.

The process they are forked from computes nothing itself, because threads do not survive a fork.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = ("rlkernel", "algorithms", "envs", "experiments", "benchmarks", "examples", "tests")
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["experiments.benchmark.command", "rlkernel.training.command", "accelerate.commands.launch"])


def start(
    arguments: Sequence[str | Path], stdout: int, stderr: int, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> BaseProcess:
    """`python ARGUMENTS` as a process: a script, or what follows -m or -c; its output goes to descriptors of this process."""
    words = [str(word) for word in arguments]
    # A connection is a descriptor that can be sent to another process.
    outputs = [Connection(os.dup(descriptor), readable=False) for descriptor in (stdout, stderr)]
    process = _context.Process(target=_become, args=(words, str(cwd), dict(os.environ if env is None else env), outputs))
    process.start()
    for output in outputs:
        output.close()
    return process


def run(
    arguments: Sequence[str | Path], cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`start`, and wait for the end: what `subprocess.run` with captured texts returns."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(arguments, out.fileno(), err.fileno(), cwd, env)
        process.join()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
        assert process.exitcode is not None
        return subprocess.CompletedProcess(list(arguments), process.exitcode, *texts)


def _become(words: list[str], cwd: str, environment: dict[str, str], outputs: list[Connection]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, output in enumerate(outputs, 1):
        os.dup2(output.fileno(), descriptor)
        output.close()
    if Path(cwd, "rlkernel").is_dir() and Path(cwd) != ROOT:
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]  # another checkout has its own
    sys.path.insert(0, cwd if words[0].startswith("-") else str(Path(words[0]).parent))
    kind, rest = (words[0], words[1:]) if words[0] in ("-m", "-c") else ("", words)
    sys.argv[:] = [kind if kind == "-c" else rest[0], *rest[1:]]
    try:
        if kind == "-c":
            exec(compile(rest[0], "<command>", "exec"), sys.modules["__main__"].__dict__)
        elif kind == "-m":
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(rest[0], run_name="__main__")
    except Exception:  # as an interpreter ends; this one's `multiprocessing` would ask no hook
        sys.excepthook(*sys.exc_info())
        sys.exit(1)
