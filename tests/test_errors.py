"""What the user can fix is told in one line, with an exit status; what is our fault keeps its traceback."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlkernel.errors import (
    BROKEN_PIPE,
    GOES_ON,
    BrokenReference,
    EvaluatorEnded,
    EvaluatorFailed,
    UsageError,
    exit_status,
    lacking,
    misfit_call,
    tell_usage_errors,
    usage_error,
)

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the import of `experiments` makes, whatever other libraries have made of it since."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    tell_usage_errors()


HEAD = "from dataclasses import replace\nfrom algorithms.grpo import GRPO\nfrom experiments import arms\n"


def error_of(line: str, name: str = "__main__", home: str = "experiments/mine.py") -> BaseException:
    """What the fourth line of a file raises."""
    source = compile(HEAD + line, str(Path.cwd() / home), "exec")
    scope: dict[str, Any] = {"__name__": name}
    with pytest.raises((TypeError, ValueError)) as raised:
        exec(source, scope)
    return raised.value


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("replace(arms.GRPO_ARM, stalenes=1)", r"Run.__init__() got an unexpected keyword argument 'stalenes'"),
        ("replace(arms.GRPO_ARM, advantage=GRPO(mean=1))", r"GRPO.__init__() got an unexpected keyword argument 'mean'"),
    ],
)
def test_a_call_that_does_not_fit_is_told_with_file_and_line(line: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = error_of(line)
    with pytest.raises(SystemExit) as stopped:
        sys.excepthook(type(error), error, error.__traceback__)
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    # Python 3.13 adds what may be meant.
    assert err.startswith(f"error: experiments/mine.py, line 4: this call does not fit: {told}")


def test_other_errors_keep_their_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert misfit_call(error_of("(lambda: int(x=1))()")) is None  # inside of a function the way to it matters
    error = error_of("int('x')")
    sys.excepthook(type(error), error, error.__traceback__)
    assert "Traceback" in capsys.readouterr().err


def test_a_command_ends_with_a_status_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(error: BaseException) -> Any:
        def call() -> None:
            raise error

        return call

    assert exit_status(lambda: None) == 0
    assert exit_status(lambda: GOES_ON) == 75
    groups = ExceptionGroup("", [ExceptionGroup("", [UsageError("--x 1: give 2")])])
    for error, status, line in (
        (groups, 2, "error: --x 1: give 2"),
        (BrokenReference("a.py: no Model"), 2, "error: a.py: no Model"),
        (
            ExceptionGroup("", [EvaluatorEnded("the fork server\nended")]),
            2,
            "error: the evaluator is gone (the fork server ended): give the same command, which goes on",
        ),
        (EvaluatorFailed("died"), 2, "error: the evaluator is gone (died): give the same command, which goes on"),
        (KeyboardInterrupt("the same command goes on"), 130, "interrupted: the same command goes on"),
    ):
        assert exit_status(fails(error)) == status
        assert capsys.readouterr() == ("", line + "\n")
    with pytest.raises(ExceptionGroup):  # beside an error of ours, a traceback is wanted
        exit_status(fails(ExceptionGroup("", [UsageError("x"), RuntimeError("y")])))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_one_line(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    def write() -> int:
        raise ExceptionGroup("a task group's", [OSError(number, "No space left on device", "runs/a/metrics.jsonl")])

    assert exit_status(write) == 2
    assert capsys.readouterr().err == (
        "error: the disk is full while runs/a/metrics.jsonl was written: free some space, then give the same command, "
        "which goes on\n"
    )


def test_a_disk_that_is_really_full_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def write() -> int:
        with open("/dev/full", "w") as file:
            file.write("a row")
        return 0

    assert exit_status(write) == 2
    assert capsys.readouterr().err == "error: the disk is full: free some space, then give the same command, which goes on\n"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.EMFILE, ""), "too many files are open: raise `ulimit -n`"),
        (OSError(errno.EFBIG, "", "runs/a"), "a file is larger than this shell allows (runs/a): raise `ulimit -f`"),
        (
            PermissionError(errno.EACCES, "", "runs/a"),
            "permission is denied (runs/a): choose another directory, or change its permissions",
        ),
        (
            OSError(errno.EROFS, "", "runs/a"),
            "the file system takes no writes (runs/a): choose another directory, or mount it writable",
        ),
    ],
)
def test_what_a_machine_lacks_is_one_line_with_the_fix(error: OSError, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> int:
        raise error

    assert exit_status(fails) == 2
    assert capsys.readouterr().err == f"error: {told}, then give the same command, which goes on\n"


def test_a_socket_that_is_not_ready_is_not_taken_for_a_lack_of_processes() -> None:
    assert usage_error(BlockingIOError(errno.EAGAIN, "")) is None
    assert "no further process may be started" in str(lacking(errno.EAGAIN))


def test_other_failures_of_a_disk_keep_their_traceback() -> None:
    def write() -> int:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        exit_status(write)


@pytest.mark.parametrize(
    "shown", ["print('x' * 1_000_000)", "[rich.console.Console().print('x' * 50) for _ in range(3000)] and 0"]
)
def test_a_pipe_that_nobody_reads_ends_a_command_without_a_word(shown: str) -> None:
    text = f"import sys, rich.console; from rlkernel.errors import exit_status; sys.exit(exit_status(lambda: {shown}))"
    reader = subprocess.Popen([sys.executable, "-c", text], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None and reader.stderr is not None
    assert reader.stdout.read(1) == b"x"
    reader.stdout.close()
    assert (reader.stderr.read(), reader.wait()) == (b"", BROKEN_PIPE)
    reader.stderr.close()


def test_files_do_not_get_the_numbers_of_closed_streams() -> None:
    text = (
        "import os, sys; from rlkernel.errors import exit_status\n"
        "def call():\n"
        "    print('to nobody'), print('to nobody', file=sys.stderr)\n"
        "    return 10 * (sys.stdin.read() == '') + (os.open('/dev/zero', os.O_RDONLY) > 2)\n"
        "os._exit(exit_status(call))"
    )
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", text], cwd=ROOT)
    assert done.returncode == 11


def test_without_docstrings_a_command_is_refused_in_one_line() -> None:
    text = "import sys; from rlkernel.errors import exit_status; sys.exit(exit_status(lambda: 0))"
    done = subprocess.run([sys.executable, "-OO", "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: PYTHONOPTIMIZE=2 (python -OO) takes docstrings away")
    assert subprocess.run([sys.executable, "-O", "-c", text], cwd=ROOT).returncode == 0


def test_a_user_without_a_home_has_one_that_does_not_exist() -> None:
    nobody = "import os, pwd; os.environ.pop('HOME', None); pwd.getpwuid = lambda uid: {}[uid]; "
    text = f"{nobody}import rlkernel, pathlib; print(pathlib.Path.home())"
    assert subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True).stdout == "/nonexistent\n"


def test_a_command_ends_without_a_last_look_at_all_that_was_imported() -> None:
    # A collection that is traced while the interpreter ends shows how many objects it looked at.
    kept = "import gc; from rlkernel.errors import exit_status; kept = [[] for _ in range(100_000)]; "

    def looked_at(end: str) -> int:
        code = f"{kept}{end}; gc.set_debug(gc.DEBUG_STATS)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        lines = [line.split(":")[2].split() for line in done.stderr.splitlines() if "objects in each generation" in line]
        return max(int(number) for line in lines for number in line)

    assert looked_at("exit_status(lambda: 0)") < 50_000 < looked_at("pass")
