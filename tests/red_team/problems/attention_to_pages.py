import torch
import torch.nn as nn

BATCH = 4
HEADS = 2
BLOCKS = 8
BLOCK = 16
DIM = 64


class Model(nn.Module):
    """Attention of one query to keys and values in pages, by a table of pages and lengths."""

    def forward(self, q, k_cache, v_cache, table, lengths):
        B, H, D = q.shape
        k = k_cache[table].reshape(B, -1, H, D).transpose(1, 2)
        v = v_cache[table].reshape(B, -1, H, D).transpose(1, 2)
        s = (q.unsqueeze(2) @ k.transpose(-2, -1)).squeeze(2) * D**-0.5
        places = torch.arange(k.shape[2], device=q.device)
        s = s.masked_fill(places[None, None] >= lengths[:, None, None], float("-inf"))
        return (torch.softmax(s, dim=-1).unsqueeze(2) @ v).squeeze(2)


def get_inputs():
    pages = BATCH * BLOCKS
    return [
        torch.randn(BATCH, HEADS, DIM),
        torch.randn(pages, BLOCK, HEADS, DIM),
        torch.randn(pages, BLOCK, HEADS, DIM),
        torch.arange(pages).view(BATCH, BLOCKS),
        torch.full((BATCH,), BLOCKS * BLOCK),
    ]


def get_init_inputs():
    return []
