"""Tokens per second of the generation back ends, and how far their log-probabilities are from a fresh forward pass.

    python3 -m benchmarks.generation --device cuda:0 --out FILE [--shapes 40m,0.6b] [--batch 128 --prompt 384 --new 192]
        [--back-ends slots,plain,generate,static]

Random weights of a Qwen3 shape, random prompts, no stop token: every row runs to its full length. Back ends: `slots` (ours: one
captured step, small operators fused by torch.compile), `plain` (ours without torch.compile), `generate` (Transformers, dynamic
cache), `static` (Transformers, static cache and compiled step). The first run of each compiles and captures and is not timed.
Needs no package beyond torch, triton and transformers. The file is written after every case; a case that fails is in it with its
error. The last lines printed are the table.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import Linear
from torch.nn.functional import linear
from transformers import Qwen3Config, Qwen3ForCausalLM

from rlkernel.policy.batched import GenerateEngine
from rlkernel.policy.engine import Engine, Request, Sample
from rlkernel.policy.fused import First
from rlkernel.policy.slots.attention import decode_attention
from rlkernel.policy.slots.cache import SLOTS, held
from rlkernel.policy.slots.decode_step import width
from rlkernel.policy.slots.decoding import for_decoding
from rlkernel.policy.slots.engine import BLOCK, SlotEngine

SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "intermediate_size": 128,
        "vocab_size": 1000,
    },
    "40m": {
        "hidden_size": 512,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "intermediate_size": 1536,
        "vocab_size": 32768,
    },
    "0.6b": {
        "hidden_size": 1024,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 3072,
        "vocab_size": 151936,
    },
}
CHECKED = 16
"""The number of rows whose log-probabilities are compared."""


def main() -> None:
    flags = parse()
    device = torch.device(flags.device)
    torch.set_float32_matmul_precision("highest")
    results: list[dict[str, Any]] = []
    for shape in flags.shapes.split(","):
        model = build(shape, device)
        facts = {"shape": shape, "parameters": sum(p.numel() for p in model.parameters())}
        print(facts, flush=True)
        if device.type == "cuda":
            results.append(guarded({"shape": shape, "case": "attention"}, partial(check_attention, shape, flags, device)))
            write(flags, results)
        for back_end in flags.back_ends.split(","):
            case = {"shape": shape, "case": back_end}
            results.append(guarded(case, partial(measure, back_end, model, flags, device)))
            write(flags, results)
            release(device)
        release(device)
    print(table(results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shapes", default="40m,0.6b")
    parser.add_argument("--back-ends", default="slots,plain,generate,static")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--prompt", type=int, default=384)
    parser.add_argument("--new", type=int, default=192)
    flags = parser.parse_args()
    unknown = sorted(set(flags.shapes.split(",")) - SHAPES.keys())
    if unknown:
        parser.error(f"--shapes: {', '.join(unknown)} unknown; use {', '.join(SHAPES)}")
    unknown = sorted(set(flags.back_ends.split(",")) - {"slots", "plain", "generate", "static"})
    if unknown:
        parser.error(f"--back-ends: {', '.join(unknown)} unknown; use slots, plain, generate, static")
    return flags


def guarded(case: dict[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run one case, so that its failure does not lose the others' numbers."""
    started = time.perf_counter()
    try:
        case = {**case, **work()}
    except Exception as error:
        traceback.print_exc()
        case = {**case, "error": f"{type(error).__name__}: {error}"[:300]}
    case["seconds_in_all"] = time.perf_counter() - started
    print(json.dumps(case), flush=True)
    return case


def write(flags: argparse.Namespace, results: list[dict[str, Any]]) -> None:
    versions = {"torch": torch.__version__, "device": flags.device}
    if flags.device.startswith("cuda"):
        versions["gpu"] = torch.cuda.get_device_name(torch.device(flags.device))
    sizes = {"batch": flags.batch, "prompt": flags.prompt, "new": flags.new}
    flags.out.write_text(json.dumps({**versions, **sizes, "results": results}, indent=1) + "\n")


def release(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def build(shape: str, device: torch.device) -> Any:
    """Build the model with float32 weights, as a trainer holds them."""
    torch.manual_seed(0)
    with device:
        config = Qwen3Config(max_position_embeddings=40960, tie_word_embeddings=True, **SHAPES[shape])
        return Qwen3ForCausalLM(config).eval()


def make_engine(back_end: str, model: Any, flags: argparse.Namespace) -> Engine:
    stops: frozenset[int] = frozenset()
    if back_end in ("slots", "plain"):
        compiled = None if back_end == "slots" else False
        return SlotEngine(model, stops, 1.0, slots=flags.batch, copy=True, compiled=compiled)
    return GenerateEngine(model, stops, 1.0, slots=flags.batch, copy=True, static=back_end == "static")


def requests(flags: argparse.Namespace, vocabulary: int, seed: int) -> list[Request]:
    generator = torch.Generator().manual_seed(seed)
    prompts = torch.randint(0, vocabulary, (flags.batch, flags.prompt), generator=generator).tolist()
    return [Request(i, tuple(prompt), 1000 * seed + i, flags.new) for i, prompt in enumerate(prompts)]


def run(engine: Engine, batch: Sequence[Request], device: torch.device) -> tuple[list[Sample], float, float]:
    """Returns the samples, the seconds until the first `advance` (prefill and one token) ended, and the seconds in all."""
    synchronize(device)
    started = time.perf_counter()
    samples = engine.advance(batch, 0)
    first = time.perf_counter() - started
    while engine.active:
        samples += engine.advance([], 32)
    synchronize(device)
    return samples, first, time.perf_counter() - started


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure(back_end: str, model: Any, flags: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    vocabulary = model.config.vocab_size
    engine = make_engine(back_end, model, flags)
    warm = time.perf_counter()
    run(engine, requests(flags, vocabulary, 1), device)
    warm = time.perf_counter() - warm
    engine.refresh()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    batch = requests(flags, vocabulary, 2)
    samples, first, total = run(engine, batch, device)
    tokens = sum(len(sample.token_ids) for sample in samples)
    assert tokens == flags.batch * flags.new
    found: dict[str, Any] = {"tokens_per_second": tokens / total, "seconds": total, "seconds_first_run": warm}
    if device.type == "cuda":
        found["gib"] = torch.cuda.max_memory_allocated(device) / 2**30
    if isinstance(engine, SlotEngine):
        decoding = total - first
        found |= {
            "seconds_prefill": first,
            "decode_tokens_per_second": flags.batch * (flags.new - 1) / decoding,
            "step_ms": 1e3 * decoding / (flags.new - 1),
        }
    by_key = {sample.key: sample for sample in samples}
    chosen = [(request, by_key[request.key]) for request in batch[:CHECKED]]
    found |= differences(engine, model, chosen, device)
    if isinstance(engine, SlotEngine):
        try:
            found["parts_ms"] = breakdown(engine, flags, device)
        except Exception as error:  # its numbers are extras; those above stay
            traceback.print_exc()
            found["parts_ms"] = {"error": f"{type(error).__name__}: {error}"[:300]}
    return found


@torch.no_grad()
def differences(engine: Any, master: Any, chosen: list[tuple[Request, Sample]], device: torch.device) -> dict[str, float]:
    """The absolute differences of recorded log-probabilities: to a fresh forward pass of the same weights in the same
    precision, to what a trainer computes (float32 weights under bfloat16 autocast), and to the float32 weights; and of fresh
    and float32."""
    recorded = torch.tensor([sample.logprobs for _, sample in chosen])
    fresh = torch.cat([logprobs(engine.model, [pair], device) for pair in chosen])
    with torch.autocast(device.type, dtype=torch.bfloat16):
        trained = torch.cat([logprobs(master, [pair], device) for pair in chosen])
    exact = torch.cat([logprobs(master, [pair], device) for pair in chosen])
    return {
        "mean_to_trained": float((recorded - trained).abs().mean()),
        "max_to_trained": float((recorded - trained).abs().max()),
        "mean_to_fresh": float((recorded - fresh).abs().mean()),
        "max_to_fresh": float((recorded - fresh).abs().max()),
        "mean_to_float32": float((recorded - exact).abs().mean()),
        "max_to_float32": float((recorded - exact).abs().max()),
        "mean_fresh_to_float32": float((fresh - exact).abs().mean()),
    }


def logprobs(model: Any, chosen: list[tuple[Request, Sample]], device: torch.device) -> torch.Tensor:
    ids = torch.tensor([[*request.context_ids, *sample.token_ids] for request, sample in chosen], device=device)
    new = len(chosen[0][1].token_ids)
    logits: torch.Tensor = model(input_ids=ids, logits_to_keep=new + 1, use_cache=False).logits[:, :-1].float()
    return logits.log_softmax(-1).gather(2, ids[:, -new:, None])[..., 0].cpu()


def breakdown(engine: SlotEngine, flags: argparse.Namespace, device: torch.device) -> dict[str, float]:
    """The milliseconds of one step and of its parts, each a captured graph of its own on a GPU, half-way through the completions.
    `other`: what is left, which is norms, rotations, activations and bookkeeping."""
    step = engine._step
    assert step is not None
    cache, state = step.cache, step.state
    config = engine.model.config
    slot_n = torch.arange(flags.batch, device=device)
    state.length_S[:-1] = flags.prompt + flags.new // 2
    state.count_S[:-1], state.done_S[:-1] = 0, False
    cache.begin_decoding(slot_n, state.length_S)
    dtype = cache.keys[0].dtype
    H, G, D = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    q, k, v = (torch.randn(flags.batch, heads, 1, D, device=device, dtype=dtype) for heads in (H, G, G))
    logits = torch.randn(flags.batch, config.vocab_size, device=device, dtype=dtype)
    weights = [m.whole_OI if isinstance(m, First) else m.weight for m in engine.model.modules() if isinstance(m, (Linear, First))]
    inputs = {size: torch.randn(flags.batch, size, device=device, dtype=dtype) for size in {w.shape[1] for w in weights}}
    parts: dict[str, Callable[[], object]] = {"linear": lambda: [linear(inputs[w.shape[1]], w) for w in weights]}
    if cache.kernels:
        parts["attention"] = lambda: [cache.decode(q, k, v, D**-0.5, layer) for layer in range(len(cache.keys))]
    parts["sampling"] = lambda: step.emit(slot_n, logits)
    stream = torch.cuda.Stream(device) if device.type == "cuda" else None
    times = {name: milliseconds(work, device, stream) for name, work in parts.items()}
    if device.type == "cuda":
        times["step"] = replayed(engine, flags, flags.batch, device)
        times["other"] = times["step"] - sum(times[name] for name in parts)
        lanes = flags.batch // 2
        while lanes >= 2:
            times[f"step_{width(lanes, flags.batch)}_lanes"] = replayed(engine, flags, lanes, device)
            lanes //= 4
    return times


def replayed(engine: SlotEngine, flags: argparse.Namespace, rows: int, device: torch.device, steps: int = 20) -> float:
    """The milliseconds that the engine's own graph takes for `rows` rows."""
    step = engine._step
    assert step is not None
    with torch.no_grad(), engine._on_stream(), for_decoding(engine.model, SLOTS):
        state = step.state
        step.run(list(range(rows)), 2)
        state.length_S[:-1] = flags.prompt + flags.new // 2
        torch.cuda.current_stream().synchronize()
        started = time.perf_counter()
        step.run(list(range(rows)), steps)
        torch.cuda.current_stream().synchronize()
        return 1e3 * (time.perf_counter() - started) / steps


@torch.no_grad()
def milliseconds(work: Callable[[], object], device: torch.device, stream: Any, times: int = 20) -> float:
    if device.type != "cuda":
        work()
        started = time.perf_counter()
        work()
        return 1e3 * (time.perf_counter() - started)
    torch.cuda.synchronize(device)
    with torch.cuda.stream(stream):
        for _ in range(2):
            work()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            work()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        graph.replay()
        begin.record(stream)
        for _ in range(times):
            graph.replay()
        end.record(stream)
        stream.synchronize()
    return float(begin.elapsed_time(end)) / times


@torch.no_grad()
def check_attention(shape: str, flags: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    """Compare the kernel with scaled_dot_product_attention in float32 on the same bfloat16 numbers, for one and for eight
    splits."""
    sizes = SHAPES[shape]
    H, G, D = sizes["num_attention_heads"], sizes["num_key_value_heads"], sizes["head_dim"]
    n, P = 16, flags.prompt + flags.new
    torch.manual_seed(1)
    q, k, v = (torch.randn(n, heads, 1, D, device=device, dtype=torch.bfloat16) for heads in (H, G, G))
    K = -(-P // BLOCK)
    keys, values = (torch.randn(n * K + K + 1, G, BLOCK, D, device=device, dtype=torch.bfloat16) for _ in range(2))
    table_SK = torch.randperm((n + 1) * K, device=device).view(n + 1, K)
    slot_n = torch.randperm(n + 1, device=device)[:n]
    length_S = torch.randint(0, P, (n + 1,), device=device, dtype=torch.int32)
    length_S[slot_n[0]], length_S[slot_n[1]] = 0, P - 1
    found = {}
    for splits in (1, 8):
        out = decode_attention(q, k, v, keys, values, table_SK, slot_n, length_S, D**-0.5, splits)
        worst = 0.0
        for i, slot in enumerate(slot_n.tolist()):
            past = int(length_S[slot])
            rows = [held(cached, table_SK[slot : slot + 1], past + 1)[0] for cached in (keys, values)]
            assert torch.equal(rows[0][:, past], k[i, :, 0]), "the new keys are not where they belong"
            k_all, v_all = (row.float().repeat_interleave(H // G, 0) for row in rows)
            right = torch.nn.functional.scaled_dot_product_attention(q[i].float(), k_all, v_all)[:, 0]
            worst = max(worst, float((out[i, 0].float() - right).abs().max()))
        found[f"max_difference_{splits}_splits"] = worst
    return found


def table(results: list[dict[str, Any]]) -> str:
    lines = ["shape  back end   tokens/s  prefill s  decode/s  ms/step   GiB  to trained mean/max    to fresh  to float32"]
    for case in results:
        head = f"{case['shape']:6} {case['case']:9}"
        if "error" in case:
            lines.append(f"{head} {case['error']}")
        elif case["case"] == "attention":
            lines.append(f"{head} " + "  ".join(f"{name} {case[name]:.1e}" for name in case if name.startswith("max_")))
        else:
            numbers = [
                f"{case['tokens_per_second']:9.0f}",
                f"{case.get('seconds_prefill', float('nan')):9.3f}",
                f"{case.get('decode_tokens_per_second', float('nan')):9.0f}",
                f"{case.get('step_ms', float('nan')):8.3f}",
                f"{case.get('gib', float('nan')):6.1f}",
                f" {case['mean_to_trained']:.1e}/{case['max_to_trained']:.1e}",
                f"    {case['mean_to_fresh']:.1e}",
                f"    {case['mean_to_float32']:.1e}",
            ]
            lines.append(" ".join([head, *numbers]))
            if "parts_ms" in case:
                parts = (f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in case["parts_ms"].items())
                lines.append("       ms: " + ", ".join(parts))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
