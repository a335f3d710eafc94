"""Keys and values of slots in pages, and the attention that reads and writes them, for any model that takes Transformers'
attention interface.

On a CPU a slot is one page (`Room.size`), so that lanes whose pages follow each other attend in views of the cache.

Legend: S slots (the last one is scratch), K pages of the longest slot, P positions of a page, B rows of a prefill, T tokens that
are new in it, N new positions of a row, L positions attended to, n lanes of a decode step (each names a slot), H query heads, G
key-value heads, D head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from transformers import AttentionInterface, Cache

from rlkernel.policy.slots.attention import decode_attention
from rlkernel.policy.slots.pages import Pages, Room
from rlkernel.policy.slots.plans import DecodePlan, LaneRun, PrefillPlan, hidden, lane_runs

SLOTS = "rlkernel_slots"
"""The name of our attention in Transformers. No mask is registered under it, so that Transformers builds none."""


class SlotCache(Cache):  # type: ignore[misc]
    """The keys and values of all slots, one tensor (pages + 1, G, P, D) of each per layer, and the table that says which pages a
    slot has. The last page is scratch, which every slot has where it has no other. The model gets the cache as `past_key_values`
    and as `slots`; `plan` says what the next forward pass is."""

    def __init__(
        self,
        config: Any,
        slots: int,
        room: Room,
        dtype: torch.dtype,
        device: torch.device,
        *,
        kernels: bool,
        opaque: bool,
    ) -> None:
        """kernels: decode with Triton. opaque: hide the attention of a decode step from what compiles its forward pass."""
        super().__init__(layers=[])
        shape = (room.pages + 1, _kv_heads(config), room.size, _head_size(config))
        self.dtype = dtype
        self.kernels = kernels
        self.opaque = opaque
        self.decoding = False
        self._reached = 0
        """The layers of a prefill that are done."""
        # The lowest that no living cache has: what was compiled for an engine that is gone may serve the next.
        self.handle = next(handle for handle in count() if handle not in _caches)
        _caches[self.handle] = self
        self.plan: PrefillPlan | DecodePlan
        self.pages = Pages(room, slots)
        self.table_SK = torch.full((slots + 1, room.width), room.pages, device=device)
        self.keys = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.num_hidden_layers)]
        self.values = [torch.zeros_like(keys) for keys in self.keys]

    @property
    def room(self) -> Room:
        """How much the cache holds."""
        return self.pages.room

    @property
    def nbytes(self) -> int:
        """The bytes of keys and values."""
        return sum(tensor.nbytes for tensor in (*self.keys, *self.values))

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        """Keep nothing, since the attention stores keys and values itself; Transformers calls this."""
        return key_states, value_states

    def resize(self, room: Room) -> None:
        """Take over another room; what slots hold stays. One tensor is replaced at a time, so that never two caches take
        memory."""
        order = self.pages.move(room)
        for tensors in (self.keys, self.values):
            for layer, old in enumerate(tensors):
                held = old[torch.tensor(order, dtype=torch.long, device=old.device)]
                tensors[layer] = old = old.new_empty(0)
                tensors[layer] = held.new_zeros((room.pages + 1, held.shape[1], room.size, held.shape[3]))
                tensors[layer][: len(order), :, : held.shape[2]] = held
        self.table_SK = self.table_SK.new_full((len(self.table_SK), room.width), room.pages)
        self.write(range(len(self.pages.held)))

    def write(self, slots: Sequence[int]) -> None:
        """Write the pages that slots have now into the table."""
        if not slots:
            return
        rows, width, scratch = (self.pages.held[slot] for slot in slots), self.room.width, self.room.pages
        table_nK = torch.tensor([row + [scratch] * (width - len(row)) for row in rows])
        self.table_SK[torch.tensor(slots, device=self.table_SK.device)] = table_nK.to(self.table_SK.device)

    def share(self, sources: Sequence[int], targets: Sequence[int], length: int) -> None:
        """Copy the first `length` positions of slots to other slots, which have the pages for them; whole pages are copied."""
        device, copied = self.keys[0].device, self.room.needed(length)
        from_pages, to_pages = (
            [page for slot in slots for page in self.pages.held[slot][:copied]] for slots in (sources, targets)
        )
        source, target = torch.tensor(from_pages, device=device), torch.tensor(to_pages, device=device)
        for tensor in (*self.keys, *self.values):
            tensor[target, :, :length] = tensor[source, :, :length]

    def place(self, slot_n: torch.Tensor, position_n: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The page of each position of a slot, and the position's place there."""
        return self.table_SK[slot_n, position_n // self.room.size], position_n % self.room.size

    def begin(self, plan: PrefillPlan) -> None:
        """Expect the layers of a prefill."""
        self.plan, self.decoding, self._reached = plan, False, 0

    def begin_decoding(self, slot_n: torch.Tensor, length_S: torch.Tensor) -> None:
        """Expect a decode step with a new token for each lane, at position `length_S[slot_n]`."""
        self.decoding = True
        if self.kernels:
            self.plan = DecodePlan(slot_n, length_S)
            return
        length_n = length_S[slot_n].long()
        lengths, page_n = length_n.tolist(), self.table_SK[slot_n, 0].tolist()
        if self.room.width == 1:
            runs = lane_runs(page_n, lengths, self.dtype)
        else:
            L = max(lengths) + 1
            runs = (LaneRun(0, len(lengths), self.table_SK[slot_n, : self.room.needed(L)], L, hidden(lengths, L, self.dtype)),)
        self.plan = DecodePlan(slot_n, length_S, *self.place(slot_n, length_n), runs)

    def in_order(self, slots: Sequence[int]) -> list[int]:
        """Slots in the order of their first pages, so that runs of lanes are long."""
        return sorted(slots, key=lambda slot: self.pages.held[slot][:1])

    def prefill(self, q_BHND: torch.Tensor, k_BGND: torch.Tensor, v_BGND: torch.Tensor, scale: float) -> torch.Tensor:
        """Store the new tokens' keys and values, and attend; (B, N, H, D). Layers come one after the other: the first call after
        `begin` is of the first layer."""
        plan, layer = self.plan, self._reached
        self._reached += 1
        assert isinstance(plan, PrefillPlan)
        keys, values = self.keys[layer], self.values[layer]
        for cached, new_BGND in ((keys, k_BGND), (values, v_BGND)):
            cached[plan.page_T, :, plan.offset_T] = new_BGND.transpose(1, 2).flatten(0, 1)[plan.flat_T]
        if plan.mask_B1NL is None:
            return sdpa(q_BHND, k_BGND, v_BGND, scale=scale, is_causal=True, enable_gqa=True).transpose(1, 2)
        L = plan.mask_B1NL.shape[3]
        k_BGLD, v_BGLD = (held(tensor, plan.pages_BK, L) for tensor in (keys, values))
        # On a GPU, only the slow implementation takes both a mask and fewer key heads.
        repeats = q_BHND.shape[1] // k_BGLD.shape[1] if keys.is_cuda else 1
        if repeats > 1:
            k_BGLD, v_BGLD = k_BGLD.repeat_interleave(repeats, 1), v_BGLD.repeat_interleave(repeats, 1)
        return sdpa(q_BHND, k_BGLD, v_BGLD, attn_mask=plan.mask_B1NL, scale=scale, enable_gqa=repeats == 1).transpose(1, 2)

    def decode(self, q_nH1D: torch.Tensor, k_nG1D: torch.Tensor, v_nG1D: torch.Tensor, scale: float, layer: int) -> torch.Tensor:
        """Store the new token's keys and values, and attend; (n, 1, H, D)."""
        plan = self.plan
        assert isinstance(plan, DecodePlan)
        keys, values = self.keys[layer], self.values[layer]
        if self.kernels:
            return decode_attention(q_nH1D, k_nG1D, v_nG1D, keys, values, self.table_SK, plan.slot_n, plan.length_S, scale)
        keys[plan.page_n, :, plan.offset_n] = k_nG1D[:, :, 0]
        values[plan.page_n, :, plan.offset_n] = v_nG1D[:, :, 0]
        n, H, _, D = q_nH1D.shape
        # The query heads that share a key head are as good as several positions (12x faster than repeating keys, on 2 cores).
        grouped = q_nH1D.reshape(n, keys.shape[1], -1, D)
        parts = [
            sdpa(
                grouped[run.start : run.end],
                held(keys, run.pages, run.positions),
                held(values, run.pages, run.positions),
                attn_mask=run.mask,
                scale=scale,
            )
            for run in plan.runs
        ]
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).reshape(n, 1, H, D)


def held(pages_GPD: torch.Tensor, chosen: slice | torch.Tensor, positions: int) -> torch.Tensor:
    """The first positions of rows, (rows, G, L, D), whose pages are a slice of one page each or (rows, K)."""
    if isinstance(chosen, slice):
        return pages_GPD[chosen, :, :positions]
    return pages_GPD[:, :, :positions][chosen].transpose(1, 2).flatten(2, 3)[:, :, :positions]


def _attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    *,
    slots: SlotCache,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attend in the slots: what Transformers calls in every layer under the name `SLOTS`."""
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    # Under autocast, norms and rotations leave float32; attention takes what the cache holds.
    query, key, value = (tensor.to(slots.dtype) for tensor in (query, key, value))
    if not slots.decoding:
        # Without a number of the layer, so that one compiled block serves all layers.
        attended = torch.ops.rlkernel.prefill_slots(query, key, value, scale, slots.handle)
    elif slots.opaque:
        attended = torch.ops.rlkernel.attend_slots(query, key, value, scale, slots.handle, module.layer_idx)
    else:
        attended = slots.decode(query, key, value, scale, module.layer_idx)
    return attended.contiguous(), None


@torch.library.custom_op("rlkernel::attend_slots", mutates_args=())
def attend_slots(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, handle: int, layer: int
) -> torch.Tensor:
    """`SlotCache.decode` as one operator that a compiler does not look into. The cache is named, not passed: a compiler might
    copy an argument that is changed."""
    return _caches[handle].decode(query, key, value, scale, layer).contiguous()


@attend_slots.register_fake
def _(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, handle: int, layer: int) -> torch.Tensor:
    n, H, _, D = query.shape
    return query.new_empty((n, 1, H, D))


@torch.library.custom_op("rlkernel::prefill_slots", mutates_args=())
def prefill_slots(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, handle: int) -> torch.Tensor:
    """`SlotCache.prefill` of the next layer, as one operator that a compiler does not look into."""
    return _caches[handle].prefill(query, key, value, scale).contiguous()


@prefill_slots.register_fake
def _(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, handle: int) -> torch.Tensor:
    B, H, N, D = query.shape
    return query.new_empty((B, N, H, D))


_caches: WeakValueDictionary[int, SlotCache] = WeakValueDictionary()

AttentionInterface.register(SLOTS, _attention)


def _kv_heads(config: Any) -> int:
    return int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)


def _head_size(config: Any) -> int:
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def attention_widths(config: Any) -> tuple[int, int]:
    """The values of one token's queries, and those of its keys, in one layer."""
    return int(config.num_attention_heads) * _head_size(config), _kv_heads(config) * _head_size(config)


def bytes_per_position(config: Any, dtype: torch.dtype) -> int:
    """The bytes that keys and values of one token take in all layers."""
    return 2 * int(config.num_hidden_layers) * _kv_heads(config) * _head_size(config) * dtype.itemsize


def unsupported(model: Any) -> str | None:
    """Say in a few words why the slots cannot hold this model's states; None if they can."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        return f"its layers are {', '.join(sorted(kinds))}"
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        return "it attends to a sliding window"
    for name in ("attn_logit_softcapping", "kv_lora_rank", "alibi", "is_encoder_decoder"):
        if getattr(config, name, None):
            return f"its configuration has {name}"
    if not getattr(model, "_supports_attention_backend", False):
        return f"{type(model).__name__} does not take an attention function"
    return None
