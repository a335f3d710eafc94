"""Matrices with the same input as one matrix: queries, keys and values, and the two halves of a gated feed-forward.

A step of few tokens spends more time on starting products than on computing them. The weights of such a group lie one behind the
other, and the model's own matrices are views of them: whoever writes these has written the whole. The first of a group
computes the product for all, and the others take their parts of it.

Legend: B rows, N positions, I inputs, O outputs of the whole group.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

GROUPS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
"""The names of matrices that have the same input wherever a module has all of them, in the order in which it asks for them."""


class First(torch.nn.Module):
    """The first matrix of a group, which computes the product for all."""

    def __init__(self, members: list[Any], waiting: list[torch.Tensor]) -> None:
        super().__init__()
        self.sizes = [member.out_features for member in members]
        self.weight = members[0].weight
        self.bias = members[0].bias
        self._waiting = waiting
        # Neither parameters nor buffers: the members' own weights are the ones that have names.
        self._whole_OI = [_joined([member.weight for member in members])]
        biased = members[0].bias is not None
        self._bias_O = [_joined([member.bias for member in members])] if biased else [None]
        for member, weight in zip(members, torch.split(self._whole_OI[0], self.sizes), strict=True):
            member.weight.data = weight
        if self._bias_O[0] is not None:
            for member, bias in zip(members, torch.split(self._bias_O[0], self.sizes), strict=True):
                member.bias.data = bias

    @property
    def whole_OI(self) -> torch.Tensor:
        """The weights of the whole group."""
        return self._whole_OI[0]

    def forward(self, input_BNI: torch.Tensor) -> torch.Tensor:
        parts = torch.split(functional.linear(input_BNI, self._whole_OI[0], self._bias_O[0]), self.sizes, -1)
        # What nobody took, after an interrupted pass, is not for the next one.
        self._waiting[:] = parts[1:]
        return parts[0]


class Later(torch.nn.Module):
    """Another matrix of a group, whose product waits for it."""

    def __init__(self, member: Any, waiting: list[torch.Tensor]) -> None:
        super().__init__()
        self.weight = member.weight
        self.bias = member.bias
        self._waiting = waiting

    def forward(self, input_BNI: torch.Tensor) -> torch.Tensor:
        return self._waiting.pop(0)


def fuse(model: Any) -> int:
    """Join the matrices of all groups in a model without gradients. Returns the number of groups. Parameters keep their names."""
    found = 0
    for owner in list(model.modules()):
        for names in GROUPS:
            members = [getattr(owner, name, None) for name in names]
            if not all(isinstance(member, torch.nn.Linear) for member in members) or not _alike(members):
                continue
            waiting: list[torch.Tensor] = []
            setattr(owner, names[0], First(members, waiting))
            for name, member in zip(names[1:], members[1:], strict=True):
                setattr(owner, name, Later(member, waiting))
            found += 1
    return found


def _alike(members: list[Any]) -> bool:
    """Whether matrices have one input size, one type, and biases all or none."""
    kinds = {(member.in_features, member.weight.dtype, member.bias is None) for member in members}
    return len(kinds) == 1


def _joined(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach() for tensor in tensors])
