"""What a locked or confined process cannot do, each in a process of its own; and what it still can."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rlkernel.evaluator.processes import sandbox
from rlkernel.evaluator.processes.sandbox import Level

needs_seccomp = pytest.mark.skipif(not sandbox.level().seccomp, reason="this kernel has no seccomp filters for us")
needs_landlock = pytest.mark.skipif(not sandbox.level().landlock, reason="this kernel has no Landlock")
BEFORE = "import ctypes, os, resource, signal, socket, subprocess, sys, time\nfrom pathlib import Path\n"
BEFORE += "from rlkernel.evaluator.processes import sandbox\n"
LOCK = "sandbox.lock(cpu_seconds=20, memory_bytes=1 << 28)\n"


def run(code: str, lock: str = LOCK) -> tuple[int, str, str]:
    """Status, output and the last line on standard error of a process that locks itself and then does `code`."""
    done = subprocess.run([sys.executable, "-c", BEFORE + lock + code], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.strip(), (done.stderr.strip().splitlines() or [""])[-1]


@needs_seccomp
@pytest.mark.parametrize(
    "code",
    [
        "os.fork()",
        "os.execv(sys.executable, [sys.executable, '-c', ''])",
        "socket.socket()",
        "socket.socketpair()",
        "os.kill(os.getppid(), 0)",
        "os.setsid()",
        "os.unlink('/nonexistent')",
        "os.mkdir('/dev/shm/x')",
        "open('/dev/null', 'w')",
        "os.open('/dev/shm', os.O_TMPFILE | os.O_RDWR)",
        "resource.setrlimit(resource.RLIMIT_CPU, (1000, 1000))",
        "os.setpriority(os.PRIO_PROCESS, 0, 19)",
    ],
)
def test_a_locked_process_may_not(code: str) -> None:
    status, _, error = run(code)
    assert status == 1
    assert "Operation not permitted" in error or "PermissionError" in error or "not allowed to raise" in error, error


def test_a_locked_process_still_computes_reads_and_answers() -> None:
    code = f"print(sum(range(10)), time.time() > 0, len(open({str(Path(sandbox.__file__))!r}).read()) > 1000, os.getpid() > 0)"
    assert run(code) == (0, "45 True True True", "")


@needs_landlock
def test_a_locked_process_reads_no_file_of_ours(tmp_path: Path) -> None:
    (tmp_path / "answer").write_text("42")
    reading = f"print(open({str(tmp_path / 'answer')!r}).read())"
    assert run(reading, lock="") == (0, "42", "")
    status, output, error = run(reading)
    assert (status, output) == (1, "")
    assert error.startswith("PermissionError: [Errno 13] Permission denied")


def test_memory_is_limited_on_top_of_what_is_mapped() -> None:
    lock = "sandbox.limit(cpu_seconds=20, memory_bytes=64 << 20)\n"
    assert run("print(len(bytearray(32 << 20)))", lock)[:2] == (0, "33554432")
    assert run("bytearray(128 << 20)", lock)[2] == "MemoryError"


def test_processor_time_is_limited() -> None:
    status, *_ = run("while True: pass", "sandbox.limit(cpu_seconds=1, memory_bytes=1 << 28)\n")
    assert status == -signal.SIGXCPU


def test_limits_by_number() -> None:
    code = "print(*(resource.getrlimit(getattr(resource, 'RLIMIT_' + n)) for n in ('CPU', 'NOFILE', 'CORE', 'FSIZE')))"
    file_size = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert run(code, "sandbox.limit(cpu_seconds=7, memory_bytes=1 << 28)\n")[1] == f"(7, 8) (64, 64) (0, 0) {file_size}"
    assert run(code)[1] == "(20, 21) (64, 64) (0, 0) (0, 0)"


def test_limits_that_are_lower_already_stay() -> None:
    # As after `ulimit -n 60` in a shell, or in a container that allows less.
    lower = "resource.setrlimit(resource.RLIMIT_CPU, (5, 5)); resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\n"
    code = "print(*(resource.getrlimit(getattr(resource, 'RLIMIT_' + n)) for n in ('CPU', 'NOFILE')))"
    assert run(code, lower + LOCK)[:2] == (0, "(5, 5) (60, 60)")


def test_a_locked_process_may_end_itself() -> None:
    assert run("os.abort()")[0] == -signal.SIGABRT
    assert run("os._exit(7)")[0] == 7


@needs_landlock
def test_a_confined_process_starts_others_and_writes_in_its_own_folder_only(tmp_path: Path) -> None:
    own, known, other = (tmp_path / name for name in ("own", "known", "other"))
    for folder in (own, known, other):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    paths = f"writable=(Path({str(own)!r}),), readable=(Path({str(known)!r}),)"
    lock = f"sandbox.confine(cpu_seconds=20, memory_bytes=1 << 28, file_bytes=1000, {paths})\n"
    code = f"""
def attempt(call):
    try:
        return call()
    except OSError as error:
        return type(error).__name__
for folder in ({str(own)!r}, {str(known)!r}, {str(other)!r}):
    file = Path(folder) / "file"
    print(attempt(file.read_text), attempt(lambda: file.write_text("mine")))
print(attempt(lambda: Path({str(own)!r}, "large").write_bytes(bytes(1001))))
print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout.strip())
"""
    status, output, error = run(code, lock)
    assert (status, error) == (0, "")
    assert output.splitlines() == ["own 4", "known PermissionError", "PermissionError PermissionError", "OSError", "42"]
    assert [(folder / "file").read_text() for folder in (own, known, other)] == ["mine", "known", "other"]


def test_a_process_ends_with_its_parent_even_if_that_was_faster() -> None:
    assert run("print('alive')", "sandbox.die_with(os.getppid())\n")[:2] == (0, "alive")
    assert run("print('alive')", "sandbox.die_with(os.getppid() + 1)\n")[:2] == (-signal.SIGKILL, "")


@pytest.mark.parametrize(
    ("level", "line"),
    [
        (Level(True, 4), "rlimits + seccomp + landlock 4"),
        (Level(False, 1), "rlimits + landlock 1"),
        (Level(True, 0), "rlimits + seccomp"),
        (Level(False, 0), "rlimits"),
    ],
)
def test_layers_in_words(level: Level, line: str) -> None:
    assert level.describe() == line


REFUSED = "def refuse(program):\n    raise sandbox.SandboxError('seccomp: Operation not permitted')\nsandbox.install = refuse\n"
KILLED = "sandbox.limit = lambda **limits: os.kill(os.getpid(), signal.SIGSYS)\n"


def test_a_machine_that_can_lock_a_process_in_passes_the_check() -> None:
    assert run("sandbox.check()\nprint(os.getpid() > 0, open('/dev/null', 'w').write('still free'))", "") == (0, "True 10", "")


@needs_seccomp
@pytest.mark.parametrize(("change", "why"), [(REFUSED, "seccomp: Operation not permitted"), (KILLED, "ended by SIGSYS")])
def test_a_machine_that_refuses_a_layer_is_told_with_the_fix(change: str, why: str) -> None:
    status, _, error = run(change + "sandbox.check()", "")
    assert status == 1
    assert error.startswith(f"rlkernel.evaluator.processes.sandbox.SandboxError: {why}: the kernel lists a layer of the sandbox")
    assert "allow prctl(PR_SET_SECCOMP) and the landlock_* system calls" in error
