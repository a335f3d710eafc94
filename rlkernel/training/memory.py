"""What a run takes of its card's memory, told by the model's configuration before any weight is loaded.

Bytes per parameter of a run that trains all weights on a GPU: float32 takes 4 for weights, 4 for gradients, 8 for AdamW's
moments, 2 for the sampler's copy and 2 for the copies of a forward pass; bfloat16 takes 2, 2 and 2 (`eight_bit_adamw`). Plain
descent (`Optimiser.rule`) has no moments.
Activations are an estimate for models of Llama's kind: those of one layer, the inputs of the others, and the gradient of the
output projection. Where nothing is recomputed, all layers keep theirs; compiled ones (`rlkernel.policy.blocks`) keep less
than a third of what others do. Sampling and training take turns, but the cache of the sampler stays.

Legend of sizes: H hidden, F feed-forward, A query heads, K key and value heads (both times their size), V vocabulary, N tokens of
a forward pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import torch

from rlkernel.config import Run
from rlkernel.policy.load import meta_model
from rlkernel.policy.replica import tied_head
from rlkernel.policy.slots.cache import attention_widths, bytes_per_position
from rlkernel.policy.slots.engine import BLOCK
from rlkernel.settings import Rule
from rlkernel.training import sharding
from rlkernel.training.eight_bit_adamw import SLICE, state_bytes

GIB = 2**30
MICRO_TOKENS = 16_384
"""The most tokens of one forward pass in training."""
LARGE = 100_000_000
"""Parameters from which on activations are recomputed in the backward pass."""
MARGIN = 0.9
"""The part of what is left that the cache takes: the rest is for what no formula knows, such as fragments."""
SLICE_BYTES = 40
"""What one value costs while its slice is updated: its gradient, moments, noise and blocks in float32."""
SLOTS = 128
"""The most slots of the sampler, `rlkernel.policy.hf.open_policy`."""
PROMPT = 1024
"""Positions of prompts and feedback that a conversation is expected to have beside its sampled tokens."""


@dataclass(frozen=True)
class Demand:
    """The fields of a `Run` that decide what memory it takes; `Run` explains them."""

    model: str
    weights: str = "float32"
    lora_rank: int = 0
    staleness: int = 0
    rollout_dtype: str = "auto"
    turns: int = 3
    max_new_tokens: int = 512
    gradient_checkpointing: bool | None = None
    rows: int = SLOTS
    """The trajectories of a step."""
    pieces: int = 1
    """The processes that hold a piece of the weights each (`sharding`)."""
    reference: bool = False
    """Whether the loss has a reference policy, `Loss.beta`."""
    rule: Rule = "adamw"
    """The rule of an update, `Optimiser.rule`."""


@dataclass(frozen=True)
class Part:
    """One thing that takes memory."""

    what: str
    bytes: int
    how: str
    """Where the number comes from, in a few words."""


NO_MOMENTS = Part("moments", 0, "plain descent has none")


@dataclass(frozen=True)
class MemoryPlan:
    """What a run takes, and what is left for the sampler's cache."""

    model: str
    parameters: int
    parts: tuple[Part, ...]
    position_bytes: int
    """The bytes of keys and values of one token."""
    page: int | None
    """The positions of a page of the cache; None where a slot is one page."""
    limit: int
    """The bytes that this process may take."""
    others: str
    """Who has the rest of the card, in a few words; may be empty."""
    needed_positions: int
    """The positions of a whole trajectory: the tokens it may sample, and `PROMPT`; never more than the model has."""
    needed_how: str
    """Where this number comes from, in a few words."""
    positions: int
    """The positions that the model has at most."""
    recomputed: bool
    """Whether training recomputes activations in the backward pass."""
    micro_tokens: int
    """The most tokens of one forward pass in training."""
    compiled: bool
    """Whether the blocks of the model are compiled for training."""

    @property
    def taken(self) -> int:
        """The bytes of all parts."""
        return sum(part.bytes for part in self.parts)

    @property
    def cache_bytes(self) -> int:
        """The bytes that the sampler's cache may take."""
        return max(0, int((self.limit - self.taken) * MARGIN))

    def slots(self, positions: int) -> int:
        """How many slots of so many positions fit, beside the scratch page that every cache has."""
        page = self.page or positions
        pages = self.cache_bytes // (page * self.position_bytes) - 1
        return max(0, min(SLOTS, pages // -(-positions // page)))

    @property
    def least_cache_bytes(self) -> int:
        """The bytes of the smallest cache that a run can sample with: one conversation and the scratch page."""
        page = self.page or self.needed_positions
        return (-(-self.needed_positions // page) + 1) * page * self.position_bytes

    @property
    def needed_bytes(self) -> int:
        """The bytes with which the run would fit: all parts, and the smallest cache."""
        return self.taken + math.ceil(self.least_cache_bytes / MARGIN)

    @property
    def on_gpu(self) -> bool:
        """Whether the memory is a card's."""
        return self.page is not None

    @property
    def fits(self) -> bool:
        """Whether the run can sample at all beside what it trains."""
        return self.slots(self.needed_positions) > 0


def demand_of(run: Run) -> Demand:
    """What a run demands."""
    others: dict[str, Any] = {
        "rows": run.prompts_per_step * run.rollouts,
        "pieces": sharding.pieces(),
        "reference": run.loss.beta > 0,
        "rule": run.optimiser.rule,
    }
    same = {field.name: getattr(run, field.name) for field in fields(Demand) if field.name not in others}
    return Demand(**others, **same)


def compiles(run: Demand, parameters: int, gpu: bool) -> bool:
    """Whether the blocks are compiled for training: on a GPU, of large models that train in full and are whole. It takes half a
    minute."""
    return gpu and not run.lora_rank and run.pieces == 1 and parameters > LARGE


def plan(
    run: Demand, config: Any, limit: int, *, gpu: bool, micro_tokens: int = MICRO_TOKENS, others: str = ""
) -> MemoryPlan:  # fmt: skip
    """The memory of a run of a model with this configuration, see `plan_model`."""
    return plan_model(run, meta_model(config), limit, gpu=gpu, micro_tokens=micro_tokens, others=others)


def plan_model(
    run: Demand, model: Any, limit: int, *, gpu: bool, micro_tokens: int = MICRO_TOKENS, others: str = ""
) -> MemoryPlan:  # fmt: skip
    """The memory of a run of a model, which may have no weights.

    Where the run does not say whether activations are recomputed, those of large models are, unless they are compiled and
    there is room for them beside every trajectory, at least for those of half as many tokens at a time. Example: a
    forward pass of 8,192 tokens takes 10 GiB for 0.6B, and saves a fourth of the arithmetic.

    limit: the bytes that the process may take. gpu: whether it trains on one, where the sampler has bfloat16 weights.
    micro_tokens: tokens of a forward pass in training.
    """
    large = model.num_parameters() > LARGE
    asked = run.gradient_checkpointing
    choices = [(large if asked is None else asked, micro_tokens)]
    if asked is None and compiles(run, model.num_parameters(), gpu):
        choices = [(False, micro_tokens), (False, micro_tokens // 2), (True, micro_tokens)]
    for recomputed, tokens in choices:
        found = _plan(run, model, limit, gpu, tokens, others, recomputed)
        if found.slots(found.needed_positions) >= min(run.rows, SLOTS):
            break
    return found


def _plan(
    run: Demand, model: Any, limit: int, gpu: bool, micro_tokens: int, others: str, recomputed: bool
) -> MemoryPlan:  # fmt: skip
    text = model.config.get_text_config()
    dtype = torch.bfloat16 if run.lora_rank or run.weights == "bfloat16" else torch.float32
    sampled = torch.bfloat16 if gpu else dtype
    parts = _lora(run, model) if run.lora_rank else _full(run, model, dtype)
    parts += _sampler(run, model, dtype, gpu)
    compiled = compiles(run, model.num_parameters(), gpu)
    positions = int(text.max_position_embeddings)
    needed = PROMPT + run.turns * run.max_new_tokens
    how = f"{run.turns} x {run.max_new_tokens:,} sampled + {PROMPT:,} of prompts"
    if needed > positions:
        needed, how = positions, "the model has no more"
    tokens = max(micro_tokens, needed)  # a row is never cut
    parts.append(_activations(run, text, dtype, tokens, recomputed, compiled))
    position = bytes_per_position(text, sampled)
    page, count = BLOCK if gpu else None, model.num_parameters()
    return MemoryPlan(
        run.model, count, tuple(parts), position, page, limit, others, needed, how, positions, recomputed, micro_tokens,
        compiled,
    )  # fmt: skip


def _full(run: Demand, model: Any, dtype: torch.dtype) -> list[Part]:
    values = [parameter.numel() for parameter in model.parameters()]
    count, size = sum(values), dtype.itemsize
    short = run.weights == "bfloat16"
    share = f", 1 of {run.pieces} pieces" if run.pieces > 1 else ""
    moments = sum(map(state_bytes, values)) if short else 8 * count
    kept = Part("moments", moments // run.pieces, f"two of {'1 byte' if short else '4 bytes'} each{share}")
    parts = [
        Part("weights", count * size // run.pieces, f"{size} bytes each{share}"),
        Part("gradients", count * size // run.pieces, f"{size} bytes each{share}"),
        NO_MOMENTS if run.rule == "sgd" else kept,
    ]
    if run.pieces > 1:
        block, head = _gathered(model)
        # Whole gradients of a block and of the head.
        parts.append(Part("gathered", size * (3 * block + 2 * head), "two blocks and the head, gradients"))
    if short:
        parts.append(Part("update", min(max(values), SLICE) * SLICE_BYTES, "one slice in float32"))
    if run.reference:
        parts.append(Part("reference policy", count * size, "Loss.beta is not 0"))
    return parts


def _gathered(model: Any) -> tuple[int, int]:
    """The parameters of one block, which is gathered with the next one, and of the output embedding, which stays."""
    block = sum(parameter.numel() for parameter in next(iter(model.base_model.layers)).parameters())
    return block, int(model.get_output_embeddings().weight.numel())


def _lora(run: Demand, model: Any) -> list[Part]:
    head = model.get_output_embeddings()
    linear = [module for module in model.modules() if isinstance(module, torch.nn.Linear) and module is not head]
    adapters = run.lora_rank * sum(module.in_features + module.out_features for module in linear) // run.pieces
    share = f", 1 of {run.pieces} pieces" if run.pieces > 1 else ""
    parts = [
        Part("weights", 2 * model.num_parameters() // run.pieces, f"2 bytes each, frozen{share}"),
        Part("adapters", 4 * adapters, f"rank {run.lora_rank}, 4 bytes each{share}"),
        Part("gradients", 4 * adapters, "of the adapters"),
        NO_MOMENTS if run.rule == "sgd" else Part("moments", 8 * adapters, "of the adapters"),
    ]
    if run.pieces > 1:
        block, whole = _gathered(model)
        parts.append(Part("gathered", 2 * (2 * block + whole), "two blocks and the head"))
    return parts


def _sampler(run: Demand, model: Any, dtype: torch.dtype, gpu: bool) -> list[Part]:
    """The sampler's copy of the weights, where it has one (`rlkernel.policy.replica`)."""
    linear = sum(module.weight.numel() for module in model.modules() if isinstance(module, torch.nn.Linear))
    rest = model.num_parameters() - linear + (model.get_output_embeddings().weight.numel() if tied_head(model) else 0)
    shares = run.weights == "bfloat16" and run.staleness == 0 and run.rollout_dtype == "auto"
    copies = gpu or run.staleness > 0 or run.pieces > 1 or run.rollout_dtype != "auto"
    if shares or not copies:
        return [Part("sampler's weights", 0, "the trained ones")]
    if not gpu:
        return [Part("sampler's weights", model.num_parameters() * dtype.itemsize, "a copy")]
    parts = [Part("sampler's weights", 2 * linear + dtype.itemsize * rest, "a copy, its matrices in bfloat16")]
    if dtype == torch.float32:
        parts.append(Part("copies in a pass", 2 * linear, "matrices in bfloat16 (autocast)"))
    return parts


def _activations(run: Demand, text: Any, dtype: torch.dtype, N: int, recomputed: bool, compiled: bool) -> Part:
    H, V, layers = int(text.hidden_size), int(text.vocab_size), int(text.num_hidden_layers)
    F = int(getattr(text, "intermediate_size", None) or 4 * H)
    A, K = attention_widths(text)
    # Norms keep float32 copies (12 bytes a value), rotations three tensors; the feed-forward keeps four, and gradients of three.
    layer = N * (24 * H + 22 * (A + K) + 14 * F)
    trained = 0 if run.lora_rank else V * H
    # The head's gradient is summed in float32 and then cast; so is that of its input.
    head = trained * (4 + dtype.itemsize) + N * H * (4 + dtype.itemsize)
    # Compiled: the inputs of both halves in float32 and normed, each matrix's inputs, and what rotations and products need.
    # Fitted to 0.6B on an H200, which keeps 44,700 bytes per token and layer; this gives 46,080.
    others = N * (10 * H + 5 * (A + 2 * K) + 5 * F) if compiled else layer
    kept = layers * N * H * dtype.itemsize if recomputed else (layers - 1) * others
    # Sampling beside training computes contexts at the same time; without gradients a layer keeps about half.
    beside = layer // 2 if run.staleness else 0
    how = f"an estimate, {N:,} tokens{', recomputed' if recomputed else ''}{', and sampling beside' if beside else ''}"
    return Part("activations", kept + max(layer, head) + beside, how)
