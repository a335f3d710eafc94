"""AdamW for bfloat16 weights: moments of eight bits, weights rounded at random, gradients released one by one.

A parameter takes 2 bytes, its gradient 2 and its moments 2 (and 8 bytes per block of 256), where float32 takes 16. One slice is
in float32 at a time, so that the largest matrix needs no workspace of its size.

*Moments* are kept as float8 (e4m3) with one float32 scale per block, as arXiv 2110.02861 (section 2) does with another 8-bit
code; of the second moment its root, whose range is half as wide. *Random rounding* goes up or down with the probabilities that
make the mean right (arXiv 1502.02551, section 3): a weight of 0.02 is 1.2e-4 from its neighbours, and an update of 1e-6 that is
rounded to the nearest never moves it (arXiv 2010.06192). So it is with moments, of which a step changes a tenth or a thousandth.

The random numbers depend on the seed, the update and the parameter alone, so that a run which goes on from a checkpoint, and
every process of a run, draws the same ones. torchao's AdamW8bit rounds moments to the nearest, keeps those of small tensors in
bfloat16, draws from torch's own generator and compiles a program for each shape of weight.

Legend: n values of a parameter, b blocks, N values of a slice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from rlkernel.rollout import derive_seed

BLOCK = 256
"""Values that share a scale."""
SLICE = 2**24
"""Values that are in float32 at a time; a multiple of BLOCK."""
FLOAT8 = torch.float8_e4m3fn
LARGEST = torch.finfo(FLOAT8).max
FLOAT8_BITS, BFLOAT16_BITS = 20, 16
"""The bits of a float32's fraction that the short formats do not have."""
SMALLEST = 2.0**-9
"""The least positive float8: a root of 0 beside others of its block would divide by nothing."""


class EightBitAdamW(torch.optim.Optimizer):
    """AdamW (arXiv 1711.05101) with the state that the module describes. A step takes the gradients of all parameters away."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        seed: int = 0,
    ) -> None:
        """seed: draws the roundings. Raises ValueError for a parameter that is not bfloat16."""
        self._seed = seed
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; see torch.optim.Optimizer."""
        super().add_param_group(param_group)
        other = next((p.dtype for p in self.param_groups[-1]["params"] if p.dtype != torch.bfloat16), None)
        if other is not None:
            raise ValueError(f"a parameter is {other}: this optimiser is for bfloat16 weights")

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient, and take the gradient away. Raises ValueError for a closure."""
        if closure is not None:
            raise ValueError("closures are not supported")
        numbered = enumerate((group, parameter) for group in self.param_groups for parameter in group["params"])
        generators: dict[torch.device, torch.Generator] = {}
        for index, (group, parameter) in numbered:
            if parameter.grad is None:
                continue
            state = self.state[parameter] or self._start(parameter)
            state["step"] += 1
            generator = generators.setdefault(parameter.device, torch.Generator(parameter.device))
            generator.manual_seed(derive_seed(self._seed, "rounding", state["step"], index))
            for start in range(0, parameter.numel(), SLICE):
                _update(parameter, state, slice(start, min(start + SLICE, parameter.numel())), group, generator)
            parameter.grad = None

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` gave. Torch's own would turn all of the state into the parameters' type."""
        super().load_state_dict({**state_dict, "state": {}})
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for index, values in state_dict["state"].items():
            device = parameters[index].device
            kept = {name: value.to(device) if torch.is_tensor(value) else value for name, value in values.items()}
            self.state[parameters[index]] = kept

    def _start(self, parameter: torch.Tensor) -> dict[str, Any]:
        state: dict[str, Any] = self.state[parameter]
        state["step"] = 0
        blocks = math.ceil(parameter.numel() / BLOCK)
        for name in ("mean", "root"):
            state[name] = torch.zeros(parameter.numel(), dtype=FLOAT8, device=parameter.device)
            state[f"{name}_scale"] = torch.zeros(blocks, dtype=torch.float32, device=parameter.device)
        return state


def state_bytes(values: int) -> int:
    """The bytes of both moments of a parameter with so many values.

    >>> state_bytes(1000)  # 1000 and 4 blocks of 4 bytes, twice
    2032
    """
    return 2 * (values + 4 * math.ceil(values / BLOCK))


def _update(
    parameter: torch.Tensor, state: dict[str, Any], part: slice, group: dict[str, Any], generator: torch.Generator
) -> None:
    (beta1, beta2), rate = group["betas"], float(group["lr"])
    assert parameter.grad is not None
    gradient_N = parameter.grad.reshape(-1)[part].float()
    weight_n = parameter.view(-1)
    weight_N = weight_n[part].float()
    mean_N = _read(state, "mean", part).lerp_(gradient_N, 1 - beta1)
    square_N = _read(state, "root", part).square_().lerp_(gradient_N.square_(), 1 - beta2)
    root_N = square_N.sqrt_()
    _write(state, "mean", part, mean_N, generator)
    _write(state, "root", part, root_N, generator)
    # The update is of the moments before they are rounded.
    mean_N /= 1 - beta1 ** state["step"]
    root_N /= math.sqrt(1 - beta2 ** state["step"])
    weight_N *= 1 - rate * group["weight_decay"]
    weight_N.addcdiv_(mean_N, root_N.add_(group["eps"]), value=-rate)
    weight_n[part] = rounded_at_random(weight_N, BFLOAT16_BITS, generator).bfloat16()


def _blocks(part: slice) -> slice:
    return slice(part.start // BLOCK, math.ceil(part.stop / BLOCK))


def _padded(values_N: torch.Tensor) -> torch.Tensor:
    """The values as blocks, (b, BLOCK), with zeros at the end."""
    return torch.nn.functional.pad(values_N, (0, -len(values_N) % BLOCK)).view(-1, BLOCK)


def _read(state: dict[str, Any], name: str, part: slice) -> torch.Tensor:
    scale_b = state[f"{name}_scale"][_blocks(part)]
    read_N: torch.Tensor = (_padded(state[name][part].float()) * scale_b[:, None]).view(-1)[: part.stop - part.start]
    return read_N


def _write(state: dict[str, Any], name: str, part: slice, values_N: torch.Tensor, generator: torch.Generator) -> None:
    values_bB = _padded(values_N)
    scale_b = values_bB.abs().amax(1) / LARGEST
    state[f"{name}_scale"][_blocks(part)] = scale_b
    # A block of zeros stays one.
    scaled_bB = values_bB / torch.where(scale_b > 0, scale_b, 1.0)[:, None]
    scaled_bB = rounded_at_random(scaled_bB, FLOAT8_BITS, generator).clamp_(-LARGEST, LARGEST)
    if name == "root":
        scaled_bB.clamp_(min=SMALLEST)
    state[name][part] = scaled_bB.view(-1)[: len(values_N)].to(FLOAT8)


def rounded_at_random(values: torch.Tensor, bits: int, generator: torch.Generator) -> torch.Tensor:
    """Float32 `values` without the last `bits` bits of their fractions, away from 0 with the probability that makes the mean
    right, else towards 0."""
    noise = torch.randint(0, 1 << bits, values.shape, dtype=torch.int32, device=values.device, generator=generator)
    # A float's bits without its sign grow with its magnitude: a carry goes on into the exponent as it should.
    return noise.add_(values.view(torch.int32)).bitwise_and_(-(1 << bits)).view(torch.float32)


@torch.no_grad()
def clip_gradients(parameters: Iterable[torch.Tensor], largest: float) -> torch.Tensor:
    """Scale bfloat16 gradients so that their norm is at most `largest`. Returns the norm before, computed in float32."""
    gradients = list(_gradients(parameters))
    if not gradients:
        return torch.zeros(())
    norms = [torch.linalg.vector_norm(gradient, dtype=torch.float32) for gradient in gradients]
    norm: torch.Tensor = torch.linalg.vector_norm(torch.stack(norms))
    scale = (largest / (norm + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(scale)
    return norm


def _gradients(parameters: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    for parameter in parameters:
        if parameter.grad is not None:
            yield parameter.grad
