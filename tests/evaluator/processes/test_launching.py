"""A zygote that is started before it is needed: the first pool takes it, and nothing of it is left where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
