"""The process that forks: what it says of its children, what it refuses, and what is left of them without a pool: nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlkernel.evaluator import wire
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import CompileRequest, TraceRequest
from rlkernel.evaluator.messages.endings import Failed
from rlkernel.evaluator.messages.forking import Exited, Fork
from rlkernel.evaluator.processes.fork_server import ForkServer
from rlkernel.evaluator.processes.zygote import Zygote
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.program.variant import Specs, Variant
from rlkernel.types import Status
from tests.forked import run


@pytest.fixture
def _signals() -> Iterator[None]:
    handler, wakeup = signal.getsignal(signal.SIGCHLD), signal.set_wakeup_fd(-1)
    yield
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, handler)


@pytest.fixture
def pool_end() -> Iterator[tuple[socket.socket, Zygote]]:
    """The pool's end of the control socket, and a zygote in this process at the other one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, Zygote(theirs)


def _sleeper() -> int:
    """A child in a session of its own that ends only when it is killed."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        while True:
            signal.pause()
    while os.getpgid(pid) != pid:
        os.sched_yield()
    return pid


def told(ours: socket.socket) -> Exited:
    """The next event that the pool hears."""
    return codec.unpack(json.loads(ours.recv(1 << 16)), Exited)


@pytest.mark.usefixtures("_signals")
def test_a_zygote_whose_pool_is_gone_kills_its_children(pool_end: tuple[socket.socket, Zygote]) -> None:
    ours, zygote = pool_end
    ours.close()
    pid = _sleeper()
    zygote.running[pid] = 1
    with pytest.raises(OSError):
        zygote.serve()
    assert os.waitpid(pid, 0) == (pid, signal.SIGKILL)


def test_a_kill_is_for_one_job_and_its_end_is_told(pool_end: tuple[socket.socket, Zygote]) -> None:
    ours, zygote = pool_end
    first, second = _sleeper(), _sleeper()
    zygote.running.update({first: 7, second: 8})
    zygote.kill(7)
    while 7 in zygote.running.values():
        zygote.reap()
    assert (end := told(ours)) == Exited(7, signal.SIGKILL, end.processor_seconds)
    assert zygote.running == {second: 8}
    zygote.kill(8)
    while zygote.running:
        zygote.reap()
    assert (end := told(ours)) == Exited(8, signal.SIGKILL, end.processor_seconds)


def test_an_exit_status_is_told_as_waitpid_gives_it(pool_end: tuple[socket.socket, Zygote]) -> None:
    ours, zygote = pool_end
    pid = os.fork()
    if pid == 0:
        while time.process_time() < 0.3:
            pass
        os._exit(3)
    zygote.running[pid] = 1
    while zygote.running:
        zygote.reap()
    end = told(ours)
    assert end == Exited(1, 3 << 8, end.processor_seconds) and end.processor_seconds > 0.2


def test_a_zygote_with_several_threads_does_not_fork(pool_end: tuple[socket.socket, Zygote]) -> None:
    _, zygote = pool_end
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match=r"^the zygote has \d+ threads; forking would copy their locks$"):
            zygote.fork(Fork(1, "trace", 1, 1), -1)
    finally:
        end.set()
        thread.join()
    assert zygote.running == {}


@pytest.fixture(scope="module")
async def server(anyio_backend: str) -> AsyncIterator[ForkServer]:
    async with ForkServer() as opened:
        yield opened


async def answer(server: ForkServer, kind: str, message: bytes) -> Any:
    """What a child of this kind says to one message; it has ended by then."""
    async with server.child(kind, cpu_seconds=60, memory_bytes=2 << 30) as child:
        header, _ = await child.ask(message)
        return codec.unpack(header, Failed)


def candidate(source: str) -> bytes:
    return codec.pack(TraceRequest(source, "h200", (Variant([[], {"dict": []}], []),)))


@pytest.mark.anyio
async def test_a_child_has_a_harmless_name_and_no_password_file(server: ForkServer) -> None:
    source = "import getpass\nraise ValueError(getpass.getuser())\n"
    assert (await answer(server, "trace", candidate(source))).detail == "line 2: ValueError: candidate"


@pytest.mark.anyio
async def test_the_folder_of_torchs_compiler_is_there_in_a_locked_child(server: ForkServer) -> None:
    """Its decorators ask for the folder, and make it where it is missing, which a locked child may not."""
    source = "from torch._inductor.runtime.cache_dir_utils import cache_dir\nraise ValueError(cache_dir())\n"
    assert (await answer(server, "trace", candidate(source))).detail == "line 2: ValueError: /"


@pytest.mark.anyio
async def test_what_fails_inside_of_a_child_is_told_and_the_zygote_goes_on(server: ForkServer) -> None:
    found = await answer(server, "trace", wire.pack({"profile": "h200"}))
    assert (found.status, found.lost) == (Status.CRASH, True)
    assert found.detail.startswith("internal error while trace: BadMessage: something else than TraceRequest (codec.py:")
    found = await answer(server, "cook", wire.pack({}))
    assert found.detail.startswith("internal error while cook: KeyError: 'cook' (zygote.py:")
    wanted = Failed(Status.INVALID, "no class ModelNew(nn.Module): define one")
    assert await answer(server, "trace", candidate("x = 1\n")) == wanted


@pytest.mark.anyio
async def test_a_child_sees_no_environment_and_no_terminal(server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The candidate says by its error message what it sees; nothing that it prints gets in the way."""
    monkeypatch.setenv("SECRET", "1")
    source = "import os\nprint('{}', flush=True)\nraise ValueError(sorted(os.environ), os.isatty(0))"
    found = await answer(server, "trace", candidate(source))
    assert found.detail == (
        "line 3: ValueError: (['HOME', 'LANG', 'LOGNAME', 'OMP_NUM_THREADS', 'PATH', 'TORCHINDUCTOR_CACHE_DIR', "
        "'TORCH_WARM_POOL', 'USER'], False)"
    )


@pytest.mark.anyio
async def test_torchs_compiler_is_imported_in_a_child_whose_text_names_it_and_nowhere_else(server: ForkServer) -> None:
    """Its import takes a second and may start a thread, with which the zygote could not fork."""
    parts = "'torch._' + 'inductor.' + part in sys.modules for part in ('runtime.triton_heuristics', 'select_algorithm')"
    told = f"import sys\nraise ValueError([{parts}])"
    assert (await answer(server, "trace", candidate(told))).detail == "line 2: ValueError: [False, False]"
    named = f"import sys\nfrom torch._inductor.select_algorithm import extern_kernels\nraise ValueError([{parts}])"
    assert (await answer(server, "trace", candidate(named))).detail == "line 3: ValueError: [True, True]"
    assert (await answer(server, "trace", candidate(told + "  # once more"))).detail == "line 2: ValueError: [False, False]"


@pytest.mark.anyio
async def test_torchs_compiler_is_imported_for_all_once_a_second_child_asks_for_it(anyio_backend: str) -> None:
    """A candidate that is looked at ten times would spend ten seconds importing it."""
    text = "import sys\nhad = 'torch._inductor.select_algorithm' in sys.modules\nraise ValueError(had)\n"
    async with ForkServer() as server:

        async def says(*, compiler: bool) -> str:
            async with server.child("trace", cpu_seconds=60, memory_bytes=2 << 30, compiler=compiler) as child:
                header, _ = await child.ask(candidate(text.replace("_inductor", "_induc' + 'tor")))
                told: Failed = codec.unpack(header, Failed)
                return told.detail

        found = [await says(compiler=compiler) for compiler in (False, True, False, True, False)]
    assert found == ["line 3: ValueError: False"] * 3 + ["line 3: ValueError: True"] * 2


def test_torchs_compiler_is_not_imported_where_that_starts_a_thread() -> None:
    """A process of several threads does not fork. In a process of its own: what other tests import may start threads in forks."""
    probe = """
import threading, time
from rlkernel.evaluator.processes import warming
def starts():
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
print(warming._stays_alone(lambda: None), warming._stays_alone(starts), threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "True False 1\n"  # a fork has tried it


@pytest.mark.anyio
async def test_a_forged_program_is_not_compiled(server: ForkServer) -> None:
    empty = Program((), (), (), {}, (), (), None)
    request = CompileRequest(empty, Specs((), ()), "h200", None, str(server.scratch), str(server.scratch))
    forged = {**codec.to_header(request), "program": {"functions": 3}}
    found = await answer(server, "compile", wire.pack(forged))
    assert found.status == Status.CRASH
    assert found.detail == "the trace is not a Program: bad list of functions"


def test_a_confined_compile_child_may_read_whether_there_are_large_pages(tmp_path: Path) -> None:
    """The C library reads it for ptxas, and asks for none where it may not."""
    settings = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not settings.exists():
        pytest.skip("this kernel has no large pages")
    probe = f"""
from pathlib import Path
from rlkernel.evaluator.messages.children import CompileRequest
from rlkernel.evaluator.messages.forking import Fork
from rlkernel.evaluator.processes import jobs
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.program.variant import Specs
from rlkernel.evaluator import wire
seen = []
def compile_program(*args):
    seen.append(Path({str(settings)!r}).read_text())
    raise KeyboardInterrupt
jobs.compile_program = compile_program
empty = Program((), (), (), {{}}, (), (), None)
request = CompileRequest(empty, Specs((), ()), "h200", None, {str(tmp_path)!r}, {str(tmp_path)!r})
try:
    jobs._compiled(request, Fork(1, "compile", 20, 1 << 30), wire.Body())
except KeyboardInterrupt:
    print(seen[0], end="")
"""
    assert run(["-c", probe]).stdout == settings.read_text()
