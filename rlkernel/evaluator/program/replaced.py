"""Replaced attributes: tensors that the reference's forward replaces for its next call, such as the hidden state of a cell.

Host code writes `self.hidden = step(x, self.hidden)`. On both sides such an attribute becomes a buffer of its module, and what is
assigned to it is copied into the buffer's memory when forward ends. So it is state like any other: it starts alike on both sides,
and it is compared after the call. The same is done to what `__init__` draws and keeps as a plain attribute, see `drawn`. What a
candidate replaces besides is `Program.carried`, see `trace.calls`: it is handed to the next call without a copy, and compared
only where it is a parameter or buffer that the reference changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

_MARK = "_rlkernel_held"


def attributes(model: nn.Module) -> dict[str, torch.Tensor]:
    """The buffers of all modules, and the tensors among their other attributes, by dotted name."""
    found: dict[str, torch.Tensor] = {}
    for path, module in model.named_modules():
        for name, value in [*vars(module).items(), *module._buffers.items()]:
            if isinstance(value, torch.Tensor):
                found[f"{path}.{name}" if path else name] = value
    return found


def newly_replaced(before: Mapping[str, torch.Tensor], model: nn.Module) -> tuple[str, ...]:
    """The names among `before`, which `attributes` gave, that now hold another tensor of the same shape and dtype."""
    now = attributes(model)
    return tuple(name for name, old in before.items() if name in now and now[name] is not old and _alike(now[name], old))


def drawn(one: nn.Module, other: nn.Module) -> tuple[str, ...]:
    """The tensors that two modules of one class, made under different seeds, keep as plain attributes with different values.

    A candidate draws other numbers than its reference where `__init__` sets a seed, or draws by numpy. As buffers, they are given
    to it as all state is.
    """
    buffers, others = {name for name, _ in one.named_buffers()}, attributes(other)
    plain = {name: tensor for name, tensor in attributes(one).items() if name not in buffers and name in others}
    return tuple(name for name, tensor in plain.items() if _alike(tensor, others[name]) and not torch.equal(tensor, others[name]))


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype


def hold(model: nn.Module, names: Sequence[str]) -> None:
    """Make buffers of the attributes `names`, and let `holding` keep them. A name that the module does not have is left out."""
    there = attributes(model)
    kept = tuple(name for name in names if name in there)
    for name in kept:
        module, own = _place(model, name)
        if own not in module._buffers:
            delattr(module, own)
            module.register_buffer(own, there[name].detach())
    if kept:
        object.__setattr__(model, _MARK, kept)


@contextmanager
def holding(model: nn.Module) -> Iterator[None]:
    """Around one call of forward: afterwards, each held buffer is the tensor that it was, with its new contents."""
    places = [_place(model, name) for name in getattr(model, _MARK, ())]
    homes = [module._buffers[own] for module, own in places]
    yield
    for (module, own), home in zip(places, homes, strict=True):
        now = getattr(module, own)
        if now is not home and isinstance(home, torch.Tensor):
            module._buffers[own] = home.copy_(now)


def _place(model: nn.Module, name: str) -> tuple[nn.Module, str]:
    path, _, own = name.rpartition(".")
    return model.get_submodule(path), own
