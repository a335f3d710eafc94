"""Triton kernels for the attention of one new token per lane over its slot's keys and values, which lie in pages.

    program (lane, key head, split): all query heads that share the key head; positions [split * share, ...) below the slot's own
    length, which is read from device memory, as the slot's pages are; split 0 also takes the new token and stores it. More than
    one split where lanes are few or slots are long, then a second kernel adds the splits up.

Legend: n lanes, S slots, K pages of a slot, P positions of a page, H query heads, G key-value heads, D head size, C splits.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl

POSITIONS = 64
"""The number of positions in a block of keys. A page has a multiple of this."""
OVERSUBSCRIBED = 4
"""Positions are split while there are fewer programs than this per multiprocessor."""
LONG = 8192
"""Positions of a slot are split while a program would have more than this, for which the others would wait."""


@triton.jit
def attend_kernel(
    q_ptr, k_ptr, v_ptr, keys_ptr, values_ptr, table_ptr, slot_ptr, length_ptr, out_ptr, lse_ptr, scale,
    q_n, q_h, k_n, k_g, v_n, v_g, page_s, page_g, table_s,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, SIZE: tl.constexpr, SIZE_POW2: tl.constexpr, GROUP: tl.constexpr,
    GROUP_POW2: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Attend, with the query heads of one key head in one lane, to one split of the slot's positions."""
    lane = tl.program_id(0)
    g = tl.program_id(1)
    split = tl.program_id(2)
    slot = tl.load(slot_ptr + lane).to(tl.int64)
    length = tl.load(length_ptr + slot).to(tl.int32)

    h = tl.arange(0, GROUP_POW2)
    d = tl.arange(0, SIZE_POW2)
    real_h = h < GROUP
    real_d = d < SIZE
    q_ptrs = q_ptr + lane * q_n + (g * GROUP + h)[:, None] * q_h + d[None, :]
    q = tl.load(q_ptrs, mask=real_h[:, None] & real_d[None, :], other=0.0)
    table = table_ptr + slot * table_s
    head = g * page_g

    k_new = tl.load(k_ptr + lane * k_n + g * k_g + d, mask=real_d, other=0.0)
    v_new = tl.load(v_ptr + lane * v_n + g * v_g + d, mask=real_d, other=0.0)
    first = split == 0
    own = tl.sum(q.to(tl.float32) * k_new.to(tl.float32)[None, :], axis=1) * scale
    top = tl.where(first, own, float("-inf"))
    total = tl.where(first, 1.0, 0.0) + tl.zeros([GROUP_POW2], tl.float32)
    acc = tl.where(first, v_new.to(tl.float32), 0.0)[None, :] + tl.zeros([GROUP_POW2, SIZE_POW2], tl.float32)
    here = tl.load(table + length // PAGE) * page_s + head + (length % PAGE) * SIZE + d
    tl.store(keys_ptr + here, k_new, mask=real_d & first)
    tl.store(values_ptr + here, v_new, mask=real_d & first)

    share = tl.cdiv(tl.cdiv(length, BLOCK), SPLITS) * BLOCK
    begin = split * share
    end = tl.minimum(begin + share, length)
    offsets = tl.arange(0, BLOCK)
    # The page of a block is read one block ahead, so that no address waits for memory.
    page = tl.load(table + begin // PAGE, mask=begin < end, other=0)
    for start in range(begin, end, BLOCK):
        p = start + offsets
        real_p = p < end
        # A block lies in one page.
        at = page * page_s + head + (start % PAGE + offsets)[:, None] * SIZE + d[None, :]
        page = tl.load(table + (start + BLOCK) // PAGE, mask=start + BLOCK < end, other=0)
        mask = real_p[:, None] & real_d[None, :]
        k = tl.load(keys_ptr + at, mask=mask, other=0.0)
        score = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        score = tl.where(real_p[None, :], score, float("-inf"))
        # Finite: the block has at least one position.
        new_top = tl.maximum(top, tl.max(score, axis=1))
        decay = tl.exp(top - new_top)
        weight = tl.exp(score - new_top[:, None])
        total = total * decay + tl.sum(weight, axis=1)
        v = tl.load(values_ptr + at, mask=mask, other=0.0)
        acc = acc * decay[:, None] + tl.dot(weight.to(v.dtype), v, input_precision=PRECISION)
        top = new_top

    row = lane * HEADS + g * GROUP + h
    real = real_h[:, None] & real_d[None, :]
    if SPLITS == 1:
        out_ptrs = out_ptr + row[:, None] * SIZE + d[None, :]
        tl.store(out_ptrs, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=real)
    else:
        store_split(out_ptr, lse_ptr, row * SPLITS + split, acc, top, total, d, real, real_h, SIZE)


@triton.jit
def store_split(out_ptr, lse_ptr, part, acc, top, total, d, real, real_h, SIZE: tl.constexpr):
    """Store what one split found: the mean of its values, and the logarithm of its weights' sum, -inf where it had no
    position."""
    empty = total == 0.0
    acc = acc / tl.where(empty, 1.0, total)[:, None]
    lse = tl.where(empty, float("-inf"), top + tl.log(tl.where(empty, 1.0, total)))
    tl.store(out_ptr + part[:, None] * SIZE + d[None, :], acc, mask=real)
    tl.store(lse_ptr + part, lse, mask=real_h)


@triton.jit
def combine_kernel(
    part_ptr, lse_ptr, out_ptr,
    SIZE: tl.constexpr, SIZE_POW2: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Add up the splits of one query head in one lane, each by its weight."""
    row = tl.program_id(0)
    c = tl.arange(0, SPLITS)
    d = tl.arange(0, SIZE_POW2)
    real_d = d < SIZE
    lse = tl.load(lse_ptr + row * SPLITS + c)
    # Split 0 holds the new token: the maximum is finite.
    weight = tl.exp(lse - tl.max(lse, axis=0))
    weight = weight / tl.sum(weight, axis=0)
    part = tl.load(part_ptr + (row * SPLITS + c)[:, None] * SIZE + d[None, :], mask=real_d[None, :], other=0.0)
    out = tl.sum(part * weight[:, None], axis=0)
    tl.store(out_ptr + row * SIZE + d, out.to(out_ptr.dtype.element_ty), mask=real_d)


def decode_attention(
    q_nH1D: torch.Tensor,
    k_nG1D: torch.Tensor,
    v_nG1D: torch.Tensor,
    keys_GPD: torch.Tensor,
    values_GPD: torch.Tensor,
    table_SK: torch.Tensor,
    slot_n: torch.Tensor,
    length_S: torch.Tensor,
    scale: float,
    splits: int | None = None,
) -> torch.Tensor:
    """Attend, for each lane, to its slot's first `length_S` positions and the new token; (n, 1, H, D).

    The new token's keys and values are stored at position `length_S`. Lanes may share a slot only if nobody needs what it holds.
    keys_GPD, values_GPD: all pages, (pages, G, P, D); P is a multiple of `POSITIONS`. table_SK: the pages of each slot, int64.
    splits: a power of two, by default `choose_splits`.
    """
    n, H, _, D = q_nH1D.shape
    G, P = keys_GPD.shape[1:3]
    if splits is None:
        splits = choose_splits(n * G, table_SK.shape[1] * P, q_nH1D.device)
    q, k, v = (tensor if tensor.stride(3) == 1 else tensor.contiguous() for tensor in (q_nH1D, k_nG1D, v_nG1D))
    out = torch.empty((n, 1, H, D), dtype=q.dtype, device=q.device)
    part = out if splits == 1 else torch.empty((n, H, splits, D), dtype=torch.float32, device=q.device)
    lse = part if splits == 1 else torch.empty((n, H, splits), dtype=torch.float32, device=q.device)
    attend_kernel[(n, G, splits)](
        q, k, v, keys_GPD, values_GPD, table_SK, slot_n, length_S, part, lse, scale,
        q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        keys_GPD.stride(0), keys_GPD.stride(1), table_SK.stride(0),
        **constants(H, G, D, P, splits, q.dtype), num_warps=4, num_stages=3,
    )  # fmt: skip
    if splits > 1:
        combine_kernel[(n * H,)](part, lse, out, SIZE=D, SIZE_POW2=triton.next_power_of_2(D), SPLITS=splits, num_warps=4)
    return out


def constants(heads: int, kv_heads: int, size: int, page: int, splits: int, dtype: torch.dtype) -> dict[str, Any]:
    """The compile-time constants of `attend_kernel`. A product of matrices needs at least 16 rows, so the group is padded."""
    if page % POSITIONS:
        raise ValueError(f"a page of {page} positions: it must be a multiple of {POSITIONS}")
    group = heads // kv_heads
    return {
        "HEADS": heads,
        "KV_HEADS": kv_heads,
        "SIZE": size,
        "SIZE_POW2": triton.next_power_of_2(max(size, 16)),
        "GROUP": group,
        "GROUP_POW2": max(16, triton.next_power_of_2(group)),
        "PAGE": page,
        "BLOCK": POSITIONS,
        "SPLITS": splits,
        "PRECISION": "ieee" if dtype == torch.float32 else "tf32",
    }


def choose_splits(programs: int, positions: int, device: torch.device) -> int:
    """The number of splits for so many programs: a power of two, at most 32 and at most the blocks of a full slot."""
    splits, enough = 1, OVERSUBSCRIBED * _processors(device)
    while splits < 32 and splits * POSITIONS * 2 <= positions and (programs * splits < enough or positions > splits * LONG):
        splits *= 2
    return splits


@lru_cache(maxsize=8)
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
