"""The start of a zygote's process, with its socket and its folder.

It imports nothing that takes seconds, so that a command can start one first, and read its arguments and import torch beside it.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_HUGE_PAGES = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""The zygote's memory lies in pages of 2 MiB where the kernel gives them, so that a fork copies a hundred entries of a page table
instead of sixty thousand. Python's own allocator asks for small ones."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A zygote that is on its way. Who takes it ends it, and closes what is here."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    """Our end of the socket over which the zygote is asked, see `messages.forking`."""
    scratch: tempfile.TemporaryDirectory[str]
    """The folder in which the zygote runs."""
    log: BinaryIO
    """What the zygote writes to its standard output and error."""

    def kill(self) -> None:
        """End the zygote's process group now, if it still runs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


def launch(gpu: str = "") -> Launched:
    """Start a zygote. `gpu`: the GPU's UUID if it is for that GPU's runner."""
    scratch = tempfile.TemporaryDirectory(prefix="rlkernel-")
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.setblocking(False)
    log = open(Path(scratch.name) / "zygote.log", "w+b")  # noqa: SIM115  (who takes it closes it)
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": scratch.name, "TMPDIR": scratch.name,
        "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "LANG": "C.UTF-8",
        "CUDA_VISIBLE_DEVICES": gpu, "PYTHONDONTWRITEBYTECODE": "1", "TOKENIZERS_PARALLELISM": "false",
        "PYTHONHASHSEED": "0",  # so that sets of words have one order in every pool
        "TORCH_WARM_POOL": "0", "TORCHINDUCTOR_COMPILE_THREADS": "1",  # a thread would forbid forking
        **_HUGE_PAGES,
    }  # fmt: skip
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    command = [sys.executable, "-P", "-m", "rlkernel.evaluator.processes.start", str(theirs.fileno()), scratch.name]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, pass_fds=[theirs.fileno()],
        start_new_session=True, cwd=scratch.name,
    )  # fmt: skip
    theirs.close()
    return Launched(process, control, scratch, log)


_waiting: list[Launched] = []
"""The zygote that was started ahead and is not taken yet."""


def ahead() -> None:
    """Start a zygote for the first pool that this process opens. It is ended with the process if there is none."""
    if not _waiting:
        _waiting.append(launch())
        atexit.register(_drop)


def take(gpu: str = "") -> Launched:
    """The zygote that was started ahead, or a new one."""
    return _waiting.pop() if _waiting and not gpu else launch(gpu)


def _drop() -> None:
    """End a zygote that nobody has taken."""
    for launched in _waiting:
        launched.kill()
        launched.process.wait()
    _waiting.clear()
