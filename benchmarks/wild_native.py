"""Candidates run as plain Python on a GPU, a process each, as a person would run them. The control of `benchmarks.wild`.

    python -m benchmarks.wild_native CORPUS/manifest.jsonl --out native.jsonl [--jobs 8] [--seconds 60]

Each pair is built and called as KernelBench does: the same seed before either construction, reference first, then the candidate
on the same inputs, five seeds, `torch.no_grad`. A row says how it ended (`ran`, `raised`, `timeout`, `died`), whether all outputs
agree within KernelBench's tolerances (1e-2 and 1e-4, absolute and relative), the relative error in norm, whether the inputs were
changed, and the medians of both times: device events, the queue filled first, the L2 cache flushed, reference and candidate in
turn. While one process times, no other does. Rows are appended one by one; the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

SEEDS = (42, 1042, 2042, 3042, 4042)
RUNS = 20
FLUSH_BYTES = 256 << 20
SPIN_CYCLES = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0, help="one candidate may take")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    cases = [json.loads(line) for line in given.manifest.read_text().splitlines()]
    if given.one is not None:
        case = next(case for case in cases if case["id"] == given.one)
        run_one(given.manifest.parent / case["reference"], given.manifest.parent / case["candidate"], given.out)
        return
    done = {json.loads(line)["id"] for line in given.out.read_text().splitlines()} if given.out.exists() else set()
    left = [case["id"] for case in cases if case["id"] not in done]
    with ThreadPoolExecutor(given.jobs) as threads, given.out.open("a") as file:
        running = [threads.submit(_in_a_process, given.manifest, name, given.seconds) for name in left]
        for future in as_completed(running):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()
    print(f"{len(left)} candidates run natively; {given.out} has {len(done) + len(left)}")


def _in_a_process(manifest: Path, name: str, seconds: float) -> dict[str, Any]:
    """The row of one candidate, whatever becomes of its process."""
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "row.json"
        command = [sys.executable, "-m", "benchmarks.wild_native", str(manifest), "--out", str(answer), "--one", name]
        environment = {**os.environ, "TRITON_CACHE_DIR": f"{scratch}/triton", "OMP_NUM_THREADS": "1"}
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
        except subprocess.TimeoutExpired:
            return {"id": name, "ended": "timeout", "detail": f"more than {seconds:g} s"}
        if answer.exists():
            return {"id": name, **json.loads(answer.read_text())}
        last = (ended.stderr.strip().splitlines() or ["nothing was printed"])[-1]
        return {"id": name, "ended": "raised" if ended.returncode == 1 else "died", "detail": last[:300]}


def run_one(reference: Path, candidate: Path, out: Path) -> None:
    """Build, compare and time one pair in this process; the row is written to `out`. Raises whatever the candidate raises."""
    import torch

    theirs, ours = _load(reference), _load(candidate)
    rows = []
    with torch.no_grad():
        init = theirs["get_init_inputs"]() if "get_init_inputs" in theirs else []
        args, kwargs = (init[0], init[1]) if _is_kernelbook(init) else (init, {})
        torch.manual_seed(SEEDS[0])
        model = theirs["Model"](*args, **kwargs).cuda() if "Model" in theirs else _only_module(theirs)(*args, **kwargs).cuda()
        torch.manual_seed(SEEDS[0])
        new = ours["ModelNew"](*args, **kwargs).cuda()
        for seed in SEEDS:
            torch.manual_seed(seed)
            inputs = [_to_gpu(value) for value in theirs["get_inputs"]()]
            before = [value.clone() if torch.is_tensor(value) else value for value in inputs]
            torch.manual_seed(seed)
            expected = model(*inputs)
            torch.manual_seed(seed)
            got = new(*inputs)
            torch.cuda.synchronize()
            rows.append(_compare(expected, got))
            changed = any(torch.is_tensor(a) and not torch.equal(a, b) for a, b in zip(before, inputs, strict=True))
            del expected, got, before
        times = _times(model, new, inputs)
    row = {"ended": "ran", "inputs_changed": changed, **times}
    for key in ("close_1e-2", "close_1e-4", "same_structure"):
        row[key] = all(found[key] for found in rows)
    row["error"] = max((found["error"] for found in rows), default=float("nan"))
    out.write_text(json.dumps(row))


def _load(path: Path) -> dict[str, Any]:
    """The names that a file defines; Triton finds the text of its functions by the file."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"wild_{path.stem.replace('-', '_')}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return vars(module)


def _is_kernelbook(init: Any) -> bool:
    """KernelBook's `get_init_inputs` returns [[positional], {keywords}]."""
    return isinstance(init, (list, tuple)) and len(init) == 2 and isinstance(init[0], list) and isinstance(init[1], dict)


def _only_module(names: dict[str, Any]) -> Any:
    """The last module class that a file of KernelBook defines."""
    import torch

    return [value for value in names.values() if isinstance(value, type) and issubclass(value, torch.nn.Module)][-1]


def _to_gpu(value: Any) -> Any:
    import torch

    return value.cuda() if torch.is_tensor(value) else value


def _compare(expected: Any, got: Any) -> dict[str, Any]:
    import torch

    pairs = list(zip(_tensors(expected), _tensors(got), strict=False))
    same = len(_tensors(expected)) == len(_tensors(got)) and all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs)
    usable = [(a, b.to(a.dtype)) for a, b in pairs if a.shape == b.shape]
    whole = len(usable) == len(pairs) == len(_tensors(expected)) > 0
    norm = sum(float((a.double() - b.double()).square().sum()) for a, b in usable)
    size = sum(float(a.double().square().sum()) for a, _ in usable)
    return {
        "same_structure": same,
        "close_1e-2": whole and all(torch.allclose(a, b, atol=1e-2, rtol=1e-2) for a, b in usable),
        "close_1e-4": whole and all(torch.allclose(a, b, atol=1e-4, rtol=1e-4) for a, b in usable),
        "error": (norm / size) ** 0.5 if size else norm**0.5,
    }


def _tensors(value: Any) -> list[Any]:
    import torch

    if torch.is_tensor(value):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [inner for item in value for inner in _tensors(item)] if isinstance(value, (list, tuple)) else []


def _times(model: Any, new: Any, inputs: list[Any]) -> dict[str, float]:
    """Median microseconds of either module, alone on the card."""
    import torch

    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    found: dict[str, list[float]] = {"reference_us": [], "candidate_us": []}
    with Path(tempfile.gettempdir(), "wild_native.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for number in range(RUNS + 3):
            for key, module in (("reference_us", model), ("candidate_us", new)):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                flush.fill_(number & 0x7F)
                torch.cuda._sleep(SPIN_CYCLES)
                start.record()
                module(*inputs)
                end.record()
                torch.cuda.synchronize()
                if number >= 3:
                    found[key].append(start.elapsed_time(end) * 1e3)
    return {key: statistics.median(times) for key, times in found.items()}


if __name__ == "__main__":
    main()
