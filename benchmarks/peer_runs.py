"""What runs inside the processes in which KernelGYM and KernelBench judge candidates, each as its own scripts run it.

KernelGYM    one driver process, which keeps KernelGYM's pool of worker processes (one worker, one task per worker: its defaults)
             and takes every candidate through KernelGYM's workflow, kernel task first, reference task if that was right.
             `_Direct` hands tasks to the pool, where a server would pass them through Redis and HTTP.
KernelBench  a new process per candidate, which calls `eval_kernel_against_ref` once, as `eval_from_generations.py` does.

A request and its answer are JSON over a socket pair; what the peers print goes to a log.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import time
import types
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

TASK_SECONDS = {"kernelgym": 300, "kernelbench": 180}
"""The peers' own time limits: REWARD_TASK_TIMEOUT of drKernel's scripts; `timeout` of eval_from_generations.py."""
KERNELGYM_SETTINGS: dict[str, Any] = {
    "toolkit": "kernelbench", "backend_adapter": "kernelbench", "backend": "triton", "entry_point": "Model",
    "num_correct_trials": 5, "num_perf_trials": 100, "enable_profiling": True, "use_reference_cache": False,
    "timeout": TASK_SECONDS["kernelgym"],
}  # fmt: skip
"""The settings that drKernel's 8B and 14B reinforcement learning scripts send."""
KERNELBENCH_SETTINGS: dict[str, Any] = {
    "num_correct_trials": 5, "num_perf_trials": 100, "measure_performance": True, "timing_method": "cuda_event",
    "backend": "triton", "verbose": False,
}  # fmt: skip
"""EvalConfig of eval_from_generations.py, with the Triton backend; precision fp32."""

Answer = dict[str, Any]


def serve(descriptor: int, evaluate: Callable[[str, str, str], Answer]) -> None:
    """Answer requests until the other side hangs up. The first message says that the process is ready."""
    with Connection(descriptor) as connection:
        connection.send_bytes(json.dumps({"ready": True}).encode())
        while True:
            try:
                request = json.loads(connection.recv_bytes())
            except EOFError:
                return
            connection.send_bytes(json.dumps(evaluate(request["name"], request["reference"], request["candidate"])).encode())


def kernelgym(descriptor: int) -> None:
    """Run KernelGYM's driver. Its packages come from PYTHONPATH."""
    from kernelgym.config import settings  # type: ignore[import-not-found]
    from kernelgym.worker.subprocess_pool import SubprocessWorkerPool  # type: ignore[import-not-found]

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)

    async def start() -> Any:
        return SubprocessWorkerPool(
            device_id=0,
            pool_size=settings.worker_pool_size,
            worker_prefix="worker_gpu_0_pool",
            max_tasks_per_worker=settings.max_tasks_per_worker,
        )

    pool = loop.run_until_complete(start())
    try:
        serve(descriptor, lambda *request: loop.run_until_complete(_through_kernelgym(pool, *request)))
    finally:
        loop.run_until_complete(pool.shutdown(timeout=5))
        loop.close()


class _Direct:
    """KernelGYM's scheduler and GPU worker in one: a task goes straight to the pool, one at a time."""

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self.payload: dict[str, Any] = {}
        self.slot = 0.0
        self.tasks = 0

    async def submit(self, task: Any) -> str:
        self.payload = {**task.payload, "device": "cuda:0"}
        return str(self.payload["task_id"])

    async def wait(self, task_id: str) -> dict[str, Any]:
        since = time.perf_counter()
        try:
            done = await self.pool.execute_task(self.payload, timeout=self.payload["timeout"], max_retries=2)
        except (RuntimeError, TimeoutError) as error:  # as gpu_worker.py: the task's failure becomes its result
            return {"error_message": f"{type(error).__name__}: {error}"}
        finally:
            self.slot += time.perf_counter() - since
            self.tasks += 1
        if not done.get("success", False):
            return {"error_message": f"{done.get('error_type')}: {done.get('error_message')}"}
        return dict(done["result"])


async def _through_kernelgym(pool: Any, name: str, reference: str, candidate: str) -> Answer:
    from kernelgym.workflow.kernelbench import KernelBenchWorkflowController  # type: ignore[import-not-found]

    direct = _Direct(pool)
    request = {**KERNELGYM_SETTINGS, "task_id": name, "reference_code": reference, "kernel_code": candidate}
    result = await KernelBenchWorkflowController().handle_request(request, direct)
    return {**kernelgym_answer(result), "slot_s": direct.slot, "tasks": direct.tasks}


def kernelgym_answer(result: dict[str, Any]) -> Answer:
    """KernelGYM's result as a row. Times are milliseconds there; accepted is what drKernel's reward takes for correct."""
    metadata = result.get("metadata") or {}
    decoy = bool(result.get("decoy_kernel"))
    accepted = result.get("status") == "completed" and bool(result.get("correctness")) and not decoy
    timed = accepted and result["reference_runtime"] > 0 and result["kernel_runtime"] > 0
    return {
        "accepted": accepted,
        "speedup": float(result["speedup"]) if timed else None,
        "candidate_us": 1e3 * result["kernel_runtime"] if timed else None,
        "reference_us": 1e3 * result["reference_runtime"] if timed else None,
        "flags": ["decoy"] if decoy else [],
        "detail": "decoy: no Triton launch seen in both grad modes" if decoy else _reason(metadata, result.get("error_message")),
    }


def kernelbench(descriptor: int) -> None:
    """Run one evaluation by KernelBench. Its packages come from PYTHONPATH."""
    stand_ins = _stand_in({"openai": "OpenAI", "litellm": "completion"})  # imported beside the evaluation, used to ask models
    import torch
    from kernelbench.eval import eval_kernel_against_ref, get_torch_dtype_from_string  # type: ignore[import-not-found]

    def evaluate(name: str, reference: str, candidate: str) -> Answer:
        since = time.perf_counter()
        try:
            result = eval_kernel_against_ref(
                original_model_src=reference,
                custom_model_src=candidate,
                device=torch.device("cuda:0"),
                precision=get_torch_dtype_from_string("fp32"),
                **KERNELBENCH_SETTINGS,
            )
            answer = kernelbench_answer(None if result is None else result.model_dump())
        except Exception as error:  # as eval_from_generations.py: whatever escapes the evaluation is a failed candidate
            answer = kernelbench_answer({"metadata": {"other_error": f"{type(error).__name__}: {error}"}})
        return {**answer, "inside_s": time.perf_counter() - since, "stand_ins": stand_ins}

    serve(descriptor, evaluate)


def kernelbench_answer(result: dict[str, Any] | None) -> Answer:
    """KernelBench's result as a row. Times are milliseconds there; a speedup above ten is a flag, not a refusal."""
    result = result or {"metadata": {"other_error": "no result: retry"}}
    metadata = result.get("metadata") or {}
    accepted = bool(result.get("compiled")) and bool(result.get("correctness"))
    candidate, reference = result.get("runtime", -1.0), result.get("ref_runtime", -1.0)
    timed = accepted and candidate > 0 and reference > 0
    return {
        "accepted": accepted,
        "speedup": reference / candidate if timed else None,
        "candidate_us": 1e3 * candidate if timed else None,
        "reference_us": 1e3 * reference if timed else None,
        "flags": ["excessive_speedup"] if metadata.get("excessive_speedup") else [],
        "detail": _reason(metadata, None),
    }


def _reason(metadata: dict[str, Any], message: Any) -> str:
    """The first thing a peer says against a candidate, on one short line."""
    keys = (
        "compilation_error",
        "runtime_error",
        "other_error",
        "error_during_performance",
        "correctness_issue",
        "validation_error",
    )
    said = next((metadata[key] for key in keys if metadata.get(key)), message) or ""
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    worst = metadata.get("max_difference")
    return (lines[-1] if lines else "")[:200] + (f", max difference {worst[0]}" if worst else "")


def _stand_in(modules: dict[str, str]) -> list[str]:
    """Put an empty module, with one name in it, in the place of each of `modules` that is not installed. Returns which these
    are."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    for name in missing:
        module = types.ModuleType(name)
        setattr(module, modules[name], None)
        sys.modules[name] = module
    return missing
