"""An engine's own copy of the trainer's weights: another precision, adapters merged, storage that never moves."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch


class Replica:
    """`model`: the plain model (adapters merged in) in `dtype`, in evaluation mode and without gradients."""

    def __init__(self, source: Any, device: torch.device, dtype: torch.dtype) -> None:
        """Raises ValueError for adapters other than LoRA on linear layers and embeddings."""
        self.source = source
        plain = plain_model(source)
        with torch.device("meta"):
            model = type(plain)(copy.deepcopy(plain.config))
        state = {name: torch.empty_like(tensor, device=device, dtype=dtype) for name, tensor in merged(plain)}
        buffers = {name: buffer.detach().to(device, copy=True) for name, buffer in plain.named_buffers()}
        tied = [name for name in model.state_dict() if name not in state and name not in buffers]
        model.load_state_dict(state, strict=False, assign=True)
        model.tie_weights()
        for name, buffer in buffers.items():
            owner, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(owner), leaf, buffer)
        missing = [name for name, tensor in (*model.named_parameters(), *model.named_buffers()) if tensor.is_meta]
        if missing:
            raise ValueError(f"no weights for {', '.join(missing[:3])} of {type(plain).__name__} (tied: {', '.join(tied)})")
        self.model = model.requires_grad_(False).eval()
        self.refresh()

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the source's weights, adapters merged in float32."""
        mine = dict(self.model.named_parameters(remove_duplicate=False))
        for name, tensor in merged(plain_model(self.source)):
            mine[name].copy_(tensor)


def plain_model(model: Any) -> Any:
    """The model inside a PEFT model; its layers still have the adapters."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@torch.no_grad()
def merged(plain: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Names as in a model without adapters, and weights; of tied ones, the first."""
    for name, parameter in plain.named_parameters():
        if ".lora_" in name:
            continue
        owner, _, leaf = name.rpartition(".")
        if not owner.endswith(".base_layer"):
            yield name, parameter
            continue
        owner = owner.removesuffix(".base_layer")
        yield f"{owner}.{leaf}", _with_adapters(plain.get_submodule(owner), parameter) if leaf == "weight" else parameter


def _with_adapters(layer: Any, weight: torch.Tensor) -> torch.Tensor:
    if layer.merged:
        return weight
    total = weight.float()
    for adapter in layer.active_adapters:
        if adapter not in layer.scaling:
            continue
        if getattr(layer, "use_dora", {}).get(adapter) or getattr(layer, "lora_bias", {}).get(adapter):
            raise ValueError(f"adapter {adapter!r} is DoRA or has a bias: only plain LoRA can be merged into the engine's copy")
        total = total + layer.get_delta_weight(adapter).float()
    return total
