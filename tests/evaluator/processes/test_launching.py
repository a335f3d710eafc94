"""A zygote that is started before it is needed: the first pool takes it, and nothing of it is left where there is none."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from rlkernel.evaluator.processes import launching
from rlkernel.evaluator.processes.fork_server import ForkServer


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_first_fork_server_takes_the_zygote_that_was_started_ahead() -> None:
    launching.ahead()
    launching.ahead()  # one is enough
    (waiting,) = launching._waiting
    async with ForkServer() as server:
        assert server.pid == waiting.process.pid
        assert launching._waiting == []
        await server.ready()
        scratch = server.scratch
        assert scratch.is_dir()
    assert waiting.process.returncode == 0
    assert not scratch.exists()


def test_a_zygote_that_nobody_takes_ends_with_its_process() -> None:
    program = """
import sys
from rlkernel.evaluator.processes import launching
launching.ahead()
(waiting,) = launching._waiting
print(waiting.process.pid, waiting.scratch.name)
print("torch" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    place, heavy = ran.stdout.splitlines()
    pid, scratch = place.split()
    assert heavy == "False"
    assert not Path(scratch).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@pytest.mark.slow
def test_the_folder_of_a_pool_that_was_killed_is_removed() -> None:
    text = (
        "import signal; from rlkernel.evaluator.processes.launching import launch; launched = launch()\n"
        "print(launched.scratch.name, flush=True), signal.pause()"
    )
    pool = psutil.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    folder = Path(pool.stdout.readline().strip())
    (zygote,) = pool.children()
    ended = os.pidfd_open(zygote.pid)
    (folder / "compile-x").mkdir()
    pool.kill()
    pool.wait()
    assert select.select([ended], [], [], 300)[0], "the zygote goes on without a pool"
    os.close(ended)
    pool.stdout.close()
    assert not folder.exists()
