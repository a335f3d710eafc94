"""What an engine samples from: its own copy of the trainer's weights, in another precision, with adapters merged, at addresses
that never change; or a model of its own around the trainer's very weights."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import lru_cache, wraps
from typing import Any

import torch

from rlkernel.policy.fused import fuse


class Replica:
    """A copy of a trainer's model. `model` is a plain model, adapters merged in, in evaluation mode and without gradients, which
    anybody may call anywhere. What a trainer adds to its model (hooks, another `forward`) is not in it."""

    def __init__(
        self,
        source: Any,
        device: torch.device,
        dtype: torch.dtype,
        *,
        as_trained: bool = False,
        rounding: torch.dtype | None = None,
        shared: bool = False,
    ) -> None:
        """dtype: the type of the copied weights. as_trained: only the linear layers get that type; the others stay as they are,
        and the model computes under autocast, as a trainer's does. Activations between the layers are then the trainer's, and
        log-probabilities closer to its. rounding: the linear layers' weights, also a tied output embedding's, are first `rounded`
        to this type. shared: take the source's tensors themselves (`can_share`), whose `dtype` is then the right one already.

        Raises ValueError for adapters other than LoRA on linear layers and embeddings.
        """
        self.source = source
        self._shared = shared
        plain = plain_model(source)
        config = copy.deepcopy(plain.config)
        self._head = tied_head(plain) if as_trained or rounding is not None else None
        if self._head is not None:  # the embedding stays as it is, the head becomes `dtype`
            config.get_text_config().tie_word_embeddings = False
            config.tie_word_embeddings = False
        with torch.device("meta"):
            kind: Any = type(plain)
            model = (under_autocast(kind, dtype) if as_trained else kind)(config)
        linear = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
        self._rounding = rounding
        self._rounded = linear if rounding is not None else set()
        state = {
            name: tensor.detach()
            if shared
            else torch.empty_like(tensor, device=device, dtype=tensor.dtype if as_trained and name not in linear else dtype)
            for name, tensor in self._weights()
        }
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
        if not shared:
            fuse(self.model)
        self.refresh()

    @torch.no_grad()
    def refresh(self) -> None:
        """Copy the source's weights again, with adapters merged in float32. Raises RuntimeError where they are shared and lie
        elsewhere now."""
        mine = dict(self.model.named_parameters(remove_duplicate=False))
        for name, tensor in self._weights():
            if self._shared:
                if tensor.data_ptr() != mine[name].data_ptr():
                    raise RuntimeError(f"the trainer's {name} is not where it was when the engine was made")
                continue
            mine[name].copy_(rounded(tensor, self._rounding) if self._rounding is not None and name in self._rounded else tensor)

    def _weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        plain = plain_model(self.source)
        for name, tensor in merged(plain):
            yield name, whole(tensor)
        if self._head is not None:
            yield self._head, whole(plain.get_output_embeddings().weight)


@lru_cache
def under_autocast(kind: Any, dtype: torch.dtype) -> Any:
    """A class of model whose passes are under autocast to `dtype`, whoever calls them: its matrices have that type, and what lies
    between them has not."""

    @wraps(kind.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        # What autocast remembers of weights would be lost to a captured graph.
        with torch.autocast(self.device.type, dtype=dtype, cache_enabled=False):
            return kind.forward(self, *args, **kwargs)

    return type(kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__})


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor, gathered where the processes of a run hold pieces of it: then all of them must ask at the same time."""
    gathered: torch.Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return gathered


def can_share(model: Any) -> bool:
    """Whether an engine can sample from the very weights of `model`: all of them are bfloat16, and there are no adapters."""
    return plain_model(model) is model and all(parameter.dtype == torch.bfloat16 for parameter in model.parameters())


def tied_head(plain: Any) -> str | None:
    """The name of the output embedding's weight, if it is the input embedding's weight too; else None."""
    head, embedding = plain.get_output_embeddings(), plain.get_input_embeddings()
    if head is None or head.weight is not embedding.weight:
        return None
    return next(f"{name}.weight" for name, module in plain.named_modules() if module is head)


def plain_model(model: Any) -> Any:
    """The model inside a PEFT model, whose layers still have the adapters; any other model as it is."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@torch.no_grad()
def merged(plain: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the name that each weight has in a model without adapters, and the weight with its adapters added. Tied weights come
    once, under the first of their names."""
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


def rounded(weight_OI: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The nearest values that `dtype` can store, in the weight's own type; the weight has O output rows of I inputs. Eight bits
    have a short range, so that every row is scaled to the largest value of the type, as engines with quantised weights do.

    >>> rounded(torch.tensor([[1.0, 0.5]]), torch.float8_e4m3fn)[0].tolist()  # 448 and 224
    [1.0, 0.5]
    """
    if dtype.itemsize > 1:
        return weight_OI.to(dtype).to(weight_OI.dtype)
    scale_O1 = (weight_OI.abs().amax(1, keepdim=True).float() / torch.finfo(dtype).max).clamp(min=torch.finfo(torch.float32).tiny)
    return ((weight_OI.float() / scale_O1).to(dtype).float() * scale_O1).to(weight_OI.dtype)
