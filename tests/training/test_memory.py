"""What is predicted of a run's memory is what small models really allocate; a run that cannot fit says so before it starts."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import torch
from rich.console import Console

from rlkernel.config import Run
from rlkernel.errors import UsageError
from rlkernel.policy.engine import Request
from rlkernel.policy.load import add_lora
from rlkernel.policy.slots.engine import SlotEngine
from rlkernel.settings import Optimiser
from rlkernel.training import loop, preflight
from rlkernel.training.memory import MARGIN, Demand, MemoryPlan, plan
from rlkernel.training.memory_table import memory_table, verdict
from tests.policy.sampling import context
from tests.training.trainer_doubles import batch_of, make_trainer

GIB = 2**30


def parts(found: MemoryPlan) -> dict[str, int]:
    return {part.what: part.bytes for part in found.parts}


@pytest.mark.parametrize("weights", ["float32", "bfloat16"])
def test_a_trainer_has_the_bytes_that_are_predicted(weights: str, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    model = tiny_model.to(getattr(torch, weights))
    trainer, _ = make_trainer(model, tiny_tokenizer, tmp_path, weights=weights)
    trainer.create_optimizer()
    trainer._backward(model, batch_of(trainer), range(4))
    found = parts(plan(Demand("tiny", weights=weights), model.config, GIB, gpu=False))
    parameters = list(model.parameters())
    assert found["weights"] == sum(parameter.nbytes for parameter in parameters)
    assert found["gradients"] == sum(parameter.grad.nbytes for parameter in parameters)
    trainer.optimizer.step()
    states = [value for state in trainer.optimizer.state.values() for name, value in state.items() if name != "step"]
    assert found["moments"] == sum(state.nbytes for state in states)


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_plain_descent_keeps_no_moments(lora_rank: int, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    sgd = Optimiser("sgd")
    if lora_rank:
        pytest.importorskip("peft")
        tiny_model = add_lora(tiny_model.to(torch.bfloat16), lora_rank, 32.0)
    trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path, optimiser=sgd, lora_rank=lora_rank)
    trainer.train()
    kept = [value for state in trainer.optimizer.state.values() for value in state.values() if value is not None]
    assert hooks.facts and kept == []
    config = tiny_model.config
    with_moments, without = (
        plan(Demand("tiny", lora_rank=lora_rank, rule=rule), config, GIB, gpu=False) for rule in ("adamw", "sgd")
    )  # fmt: skip
    assert (parts(without)["moments"], with_moments.taken - without.taken) == (0, parts(with_moments)["moments"])


def test_adapters_have_the_bytes_that_are_predicted(tiny_model: Any) -> None:
    found = parts(plan(Demand("tiny", lora_rank=4), tiny_model.config, GIB, gpu=False))
    pytest.importorskip("peft")
    model = add_lora(tiny_model.to(torch.bfloat16), 4, 32.0)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    assert found["adapters"] == found["gradients"] == sum(parameter.nbytes for parameter in trained)
    assert found["weights"] == sum(parameter.nbytes for parameter in model.parameters() if not parameter.requires_grad)
    assert found["moments"] == 2 * found["adapters"]


@pytest.mark.parametrize("weights", ["float32", "bfloat16"])
def test_a_cache_has_the_slots_and_bytes_that_are_predicted(weights: str, tiny_model: Any) -> None:
    model = tiny_model.to(getattr(torch, weights))
    demand = Demand("tiny", weights=weights, turns=2, max_new_tokens=100)
    needed = sum(parts(plan(demand, model.config, GIB, gpu=False)).values())
    found = plan(demand, model.config, needed + 2_000_000, gpu=False)
    engine = SlotEngine(model, frozenset(), 1.0, cache_bytes=found.cache_bytes)
    engine.advance([Request(0, context(100, 0), seed=0, budget=28)], 1)
    # 128 positions are one block; one slot more is scratch.
    assert engine.free + engine.active == found.slots(128) > 2
    assert engine.cache_bytes == (found.slots(128) + 1) * 128 * found.position_bytes
    assert engine.cache_bytes <= found.cache_bytes


def test_a_cache_of_pages_has_the_slots_and_bytes_that_are_predicted(tiny_model: Any) -> None:
    demand = Demand("tiny", turns=3, max_new_tokens=100)
    needed = plan(demand, tiny_model.config, GIB, gpu=True).taken
    found = plan(demand, tiny_model.config, needed + 4_000_000, gpu=True)
    assert found.page == 128 and found.position_bytes == 256
    # 109 pages of 128 positions at 256 bytes are in 90 % of 4 MB; one is scratch, and 300 positions are three pages.
    assert (found.slots(128), found.slots(300), found.slots(384), found.slots(385)) == (108, 36, 36, 27)
    # The same pages in float32, as the CPU has them.
    engine = SlotEngine(tiny_model, frozenset(), 1.0, page=128, cache_bytes=2 * found.cache_bytes)
    engine.advance([Request(0, context(200, 0), seed=0, budget=100)], 1)
    assert engine.cache_bytes == 2 * 109 * 128 * found.position_bytes <= 2 * found.cache_bytes
    # A trajectory ends where the model does: 512 positions are four pages, beside the scratch page.
    assert (found.needed_positions, found.positions) == (512, 512)
    assert found.fits and found.least_cache_bytes == 5 * 128 * 256


def test_a_run_fits_where_a_whole_conversation_does_prompts_included(tiny_model: Any) -> None:
    demand = Demand("tiny", turns=3, max_new_tokens=100)
    tiny_model.config.max_position_embeddings = 2048
    # Three answers of 100 tokens and 1,024 of prompts are 11 pages of 128 positions, beside the scratch page.
    taken = plan(demand, tiny_model.config, GIB, gpu=True).taken
    page = 128 * 256 / MARGIN
    fits, short, sampled = (plan(demand, tiny_model.config, taken + int(pages * page) + 1, gpu=True) for pages in (12, 11, 4))
    assert verdict(fits) == "tiny fits: 1 conversation of 1,324 tokens at a time"
    # One page more would fit, which is 0.000034 GiB.
    assert not short.fits and 0 < short.needed_bytes - short.limit <= page + 1
    assert verdict(short).startswith("tiny does not fit: it needs ") and "so 3.4e-05 GiB are missing; " in verdict(short)
    assert not sampled.fits, "there is room for what is sampled, and none for prompts"


@pytest.mark.parametrize("weights, staleness, copied", [("bfloat16", 0, 0), ("bfloat16", 1, 2), ("float32", 0, 2)])
def test_the_sampler_copies_what_it_cannot_share(weights: str, staleness: int, copied: int, tiny_model: Any) -> None:
    found = parts(plan(Demand("tiny", weights=weights, staleness=staleness), tiny_model.config, GIB, gpu=True))
    matrices = sum(module.weight.numel() for module in tiny_model.modules() if isinstance(module, torch.nn.Linear))
    assert found["sampler's weights"] >= copied * matrices
    assert (found["sampler's weights"] > 0) is bool(copied)


def published(layers: int, width: int, heads: int, feed_forward: int, **changes: Any) -> Any:
    from transformers import Qwen3Config

    return Qwen3Config(
        vocab_size=151_936,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=feed_forward,
        num_key_value_heads=8,
        head_dim=128,
        **changes,
    )


def test_the_published_sizes() -> None:
    large = published(40, 5120, 40, 17_408, tie_word_embeddings=False)
    found = plan(Demand("14b", weights="bfloat16", max_new_tokens=1024), large, 112 * GIB, gpu=True)
    # Qwen3-14B has 14.8e9 parameters: 2 + 2 + 2 bytes and a scale per block of 256 are 6.03 bytes each.
    assert found.parameters == 14_768_307_200
    held = parts(found)
    assert sum(held[name] for name in ("weights", "gradients", "moments")) == pytest.approx(6.03125 * 14_768_307_200, rel=1e-4)
    # 40 layers, 8 heads of 128, keys and values, 2 bytes.
    assert found.position_bytes == 40 * 8 * 128 * 2 * 2
    assert found.fits
    exact = plan(Demand("14b", max_new_tokens=1024), large, 112 * GIB, gpu=True)
    assert not exact.fits
    assert exact.taken > 266e9
    assert (exact.slots(2048), exact.cache_bytes) == (0, 0)


def test_pieces_divide_what_trains_and_nothing_else() -> None:
    config = published(36, 4096, 32, 12_288, tie_word_embeddings=False)  # 8B
    one, four = (plan(Demand("8b", pieces=pieces), config, 135 * GIB, gpu=True) for pieces in (1, 4))
    for name in ("weights", "gradients", "moments"):
        assert parts(four)[name] == parts(one)[name] // 4
    assert parts(four)["sampler's weights"] == parts(one)["sampler's weights"] > 2 * one.parameters
    # 16 bytes for each of 8.19e9 parameters are 122 GiB, too much for one card and its sampler; a quarter is not.
    assert not one.fits and four.fits and four.recomputed and not four.compiled


def test_pieces_divide_frozen_weights_and_adapters(tiny_model: Any) -> None:
    config = published(40, 5120, 40, 17_408, tie_word_embeddings=False)  # 14B
    one, two = (parts(plan(Demand("14b", lora_rank=32, pieces=pieces), config, 135 * GIB, gpu=True)) for pieces in (1, 2))
    for name in ("weights", "adapters", "gradients", "moments"):
        assert two[name] == one[name] // 2 > 0
    # A layer: queries and output 2 x 5120^2, keys and values 2 x 5120 x 1024, feed-forward 3 x 5120 x 17408, norms 2 x 5120 + 2 x
    # 128; two layers and an output of 151,936 x 5120, at 2 bytes.
    layer = 2 * 5120**2 + 2 * 5120 * 1024 + 3 * 5120 * 17_408 + 2 * 5120 + 2 * 128
    assert two["gathered"] == 2 * (2 * layer + 151_936 * 5120) and "gathered" not in one


def test_activations_are_recomputed_where_there_is_no_room_for_them_unless_the_run_decides() -> None:
    config = published(28, 1024, 16, 3072)  # 0.6B

    def recomputed(gib: int, *, gpu: bool = True, **changes: Any) -> bool:
        return plan(Demand("0.6b", **changes), config, gib * GIB, gpu=gpu).recomputed

    # About 12 GiB without activations, 21 of these, and 128 slots of 3 x 512 + 1024 tokens at 112 KiB are 35.
    assert recomputed(60) and not recomputed(140)
    # A token keeps 10 x 1024 + 5 x (2048 + 2 x 1024) + 5 x 3072 = 46,080 bytes in each of 27 layers: 16,384 tokens keep 19.0 GiB,
    # and one layer more in its backward pass 2.1; slots want 128 x 1,924 positions of 112 KiB, or 26.3 GiB.
    short = Demand("0.6b", max_new_tokens=300)
    kept = {gib: plan(short, config, gib * GIB, gpu=True) for gib in (50, 66, 70)}
    assert [(p.recomputed, p.micro_tokens) for p in kept.values()] == [(True, 16_384), (False, 8_192), (False, 16_384)]
    # Sampling beside training takes about half of a layer more: 16,384 x (24 x 1024 + 22 x 3072 + 14 x 3072) / 2 bytes.
    apart, beside = (parts(plan(replace(short, staleness=age), config, 70 * GIB, gpu=True))["activations"] for age in (0, 1))
    assert beside - apart == 16_384 * 135_168 // 2
    # For fewer trajectories there is room sooner; none is where the blocks are not compiled.
    assert not recomputed(70, rows=16)
    assert recomputed(140, lora_rank=8) and recomputed(140, gpu=False)
    assert recomputed(140, gradient_checkpointing=True) and not recomputed(70, gradient_checkpointing=False)
    small = published(2, 64, 4, 128)
    small.vocab_size = 1000
    assert not plan(Demand("small"), small, GIB, gpu=False).recomputed


def test_the_table_has_at_most_100_columns() -> None:
    config = published(36, 4096, 32, 12_288)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(memory_table(plan(Demand("a-model", weights="bfloat16"), config, 80 * GIB, gpu=True, others="others")))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 100
    for words in ("a-model", "weights", "moments", "sampler's weights", "together", "there is", "conversation of 32,768"):
        assert words in text


def test_a_run_that_cannot_fit_ends_with_the_table(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(preflight, "machine_bytes", lambda: 100_000)
    monkeypatch.setattr(loop, "load_model", lambda *given, **changes: pytest.fail("weights were loaded"))
    with pytest.raises(UsageError) as refused:
        anyio.run(loop.train, replace(run, device="cpu"), tmp_path / "run")
    told = " ".join(capsys.readouterr().err.split())
    assert "moments" in told and "0 at a time: the model has no more" in told and "this machine's memory, not a card's" in told
    line = re.fullmatch(
        r".* does not fit: it needs \S+ GiB, and may take 9\.3e-05 GiB of this machine, so (\S+) GiB are missing; no "
        r"setting that was tried is enough: take a smaller model, or a machine with a card",
        str(refused.value),
    )
    assert line and f"│ missing │ {line[1]} │ with the keys and values of one conversation" in told
