"""The GPU runner: trusted Python, one per GPU. It takes a Program with its binaries, and answers with facts or a failure.

After an error that the context does not survive, it reports the verdict and ends; the pool starts another.
"""

from __future__ import annotations

import gc
import socket
from collections import OrderedDict
from dataclasses import asdict
from typing import Any

import torch

from rlkernel.errors import BrokenReference, one_line
from rlkernel.evaluator import wire
from rlkernel.evaluator.gpu import driver
from rlkernel.evaluator.gpu.checks import Strayed
from rlkernel.evaluator.gpu.compiled_reference import compiled_time
from rlkernel.evaluator.gpu.fused import Fused
from rlkernel.evaluator.gpu.problem import GpuProblem, Known
from rlkernel.evaluator.gpu.session import Session
from rlkernel.evaluator.gpu.stopwatch import Hung, Stopwatch, settle
from rlkernel.evaluator.gpu.subject import NoConfig, Subject, binary_of
from rlkernel.evaluator.gpu.trials import Unmeasured
from rlkernel.evaluator.program import schema as programs
from rlkernel.evaluator.program.schema import MalformedProgram
from rlkernel.types import Status

PROBLEMS_KEPT = 256
KEEP_RESERVED = 24 << 30
"""Bytes of GPU memory that torch may hold on to between candidates."""


class Runner:
    """Serves one GPU."""

    def __init__(self) -> None:
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.fused = Fused()
        self.stopwatch = Stopwatch(self.fused.flush)
        self._problems: OrderedDict[str, GpuProblem] = OrderedDict()
        settle(60.0)
        gc.freeze()  # a collection then looks at what candidates leave alone

    def hello(self, header: dict[str, Any]) -> dict[str, Any]:
        """Warm the libraries up, so that no candidate pays for it; float64, which only studies use, in the first runner alone."""
        fraction = min(0.95, float(header["memory_bytes"]) / torch.cuda.get_device_properties(0).total_memory)
        torch.cuda.set_per_process_memory_fraction(fraction)
        for dtype in (torch.float32, torch.float16, *((torch.bfloat16, torch.float64) if header["first"] else ())):
            square = torch.randn(1024, 1024, device="cuda", dtype=dtype)
            (torch.addmm(square[0], square, square) @ square).sum().item()
            torch.nn.functional.conv2d(
                square.view(4, 16, 128, 128), square.view(-1)[: 16 * 16 * 9].view(16, 16, 3, 3)
            ).sum().item()
        return {"name": torch.cuda.get_device_name(0), "processors": torch.cuda.get_device_properties(0).multi_processor_count}

    def study(self, header: dict[str, Any]) -> dict[str, Any]:
        """{"known": ...} of a problem, {"broken": why}, or {"retry": "plain"} if scaled inputs cost the context."""
        self._set_tf32(header)
        try:
            problem = self._problem(header)
            reference = programs.from_json(header["reference"])
            known = problem.study(reference, self.stopwatch, stress=header["stress"], tf32=bool(header["tf32"]))
        except BrokenReference as error:
            return {"broken": str(error)}
        except Exception as error:  # whatever the reference's own code raises is told in one line
            if driver.lost_context() is not None:
                if header["stress"]:
                    return {"retry": "plain", "lost": True}
                return {"broken": f"{header['name']}: on the GPU: {one_line(error)}", "lost": True}
            return {"broken": f"{header['name']}: on the GPU: {one_line(error)}"}
        return {"known": asdict(known)}

    def compiled(self, header: dict[str, Any]) -> dict[str, Any]:
        """The reference under torch.compile. The process is of no other use afterwards."""
        self._set_tf32(header)
        return compiled_time(header["source"], header["name"], self.stopwatch)

    def evaluate(self, header: dict[str, Any], body: bytes) -> dict[str, Any]:
        """Never raises for what a candidate does."""
        self._set_tf32(header)
        reply = self._verdict(header, body)
        if not reply.get("lost"):
            if "status" in reply:  # an exception's frames hold tensors
                gc.collect()
            if torch.cuda.memory_reserved() > KEEP_RESERVED:
                torch.cuda.empty_cache()
        return reply

    @staticmethod
    def _set_tf32(header: dict[str, Any]) -> None:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = bool(header["tf32"])

    def _problem(self, header: dict[str, Any]) -> GpuProblem:
        key = header["name"] + header["source"]
        if key not in self._problems:
            self._problems[key] = GpuProblem(header["source"], header["name"])
            if len(self._problems) > PROBLEMS_KEPT:
                self._problems.popitem(last=False)
        return self._problems[key]

    def _verdict(self, header: dict[str, Any], body: bytes) -> dict[str, Any]:
        try:
            return self._examine(header, body, self._problem(header), Known.from_json(header["known"]))
        except Strayed as error:
            return {"status": str(Status.OUT_OF_BOUNDS), "detail": str(error), "lost": True}
        except Hung:
            return _timeout(header)
        except MalformedProgram as error:
            return {"status": str(Status.CRASH), "detail": f"the trace is not a Program: {error}"}
        except NoConfig:
            return {"status": str(Status.RUNTIME_ERROR), "detail": "no configuration of a kernel can be launched on this GPU"}
        except Unmeasured as error:
            return {"status": str(Status.RUNTIME_ERROR), "detail": str(error)}
        except Exception as error:  # what the GPU reports of the candidate's work, and what a forged Program makes torch raise
            try:
                settle(float(header["seconds"]))
            except Hung:
                return _timeout(header)
            except RuntimeError:  # the error that `failure` asks the driver about
                return failure(error)
            return failure(error)

    def _examine(self, header: dict[str, Any], body: bytes, problem: GpuProblem, known: Known) -> dict[str, Any]:
        loaded: dict[str, driver.Kernel] = {}
        for table in header["kernels"].values():
            for configs in table.values():
                self._load(configs, header["binaries"], body, loaded)
        seconds = float(header["seconds"])
        subject = Subject(programs.from_json(header["program"]), header["kernels"]["program"], loaded, seconds)
        other: Subject | None = None
        if header["other"] is not None:
            other = Subject(programs.from_json(header["other"]), header["kernels"]["other"], loaded, seconds)
        modal, tf32 = bool(header["modal"]), bool(header["tf32"])
        try:
            facts = facts_of(Session(problem, known, self.stopwatch, self.fused, subject, other, modal, tf32, seconds))
            settle(seconds)
        finally:
            subject.release()
            if other is not None:
                other.release()
        for kernel in loaded.values():
            kernel.unload()
        return facts

    @staticmethod
    def _load(configs: dict[str, Any], entries: dict[str, Any], body: bytes, loaded: dict[str, driver.Kernel]) -> None:
        """The binaries of one launch; a configuration that does not load is dropped where another one does."""
        refused: driver.DriverError | None = None
        for choice, facts in list(configs.items()):
            if facts["key"] in loaded:
                continue
            try:
                loaded[facts["key"]] = driver.Kernel(binary_of(facts), wire.raw(entries[facts["key"]], body))
            except driver.DriverError as error:
                refused = error
                del configs[choice]
        if refused is not None and not configs:
            raise refused


def _timeout(header: dict[str, Any]) -> dict[str, Any]:
    detail = f"forward takes more than {header['seconds']:g} s on the GPU"
    return {"status": str(Status.TIMEOUT), "detail": detail, "lost": True}


def facts_of(session: Session) -> dict[str, Any]:
    """A whole stay, as the pool reads it: times and rows only if every output matched."""
    session.prepare()
    match, live, other_mode = session.rounds()
    facts: dict[str, Any] = {}
    if match.matches:
        timed, host_us, match = session.trials()
        facts = {"speedup": asdict(timed), "host_us": host_us, "rows": session.rows(timed.candidate_us)} if match.matches else {}
    return {
        **facts, "choices": {str(k): v for k, v in session.subject.choices.items()}, "other_mode": other_mode,
        "matches": match.matches, "detail": match.detail, "error": session.worst,
        "live": {str(k): v for k, v in live.items()},
    }  # fmt: skip


def failure(error: Exception) -> dict[str, Any]:
    """A verdict from the driver's error number, not from text."""
    code = driver.lost_context()
    if code is not None:
        status, detail = driver.STATUS_OF_ERROR.get(code, (Status.CRASH, f"the GPU reports error {code}"))
        return {"status": str(status), "detail": detail, "lost": True}
    if isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in str(error):
        return {"status": str(Status.RUNTIME_ERROR), "detail": "forward needs more GPU memory than a candidate may have"}
    return {"status": str(Status.RUNTIME_ERROR), "detail": one_line(error)[:300]}


def serve(sock: socket.socket) -> None:
    """Answer until the pool closes the socket, or until the context is lost."""
    runner: Runner | None = None
    while (message := wire.receive(sock)) is not None:
        header, body = message
        if header["do"] == "hello":
            runner = Runner()
            wire.send(sock, wire.pack(runner.hello(header)))
            continue
        assert runner is not None
        if header["do"] == "compiled":
            wire.send(sock, wire.pack(runner.compiled(header)))
            return
        reply = runner.study(header) if header["do"] == "study" else runner.evaluate(header, body)
        wire.send(sock, wire.pack(reply))
        if reply.get("lost"):
            return
