"""Makes what a reference's file makes on a device: its modules, and its inputs, drawn from seeds.

Inputs are drawn on the device also where the file names the CPU, as LeetGPU's files do: a hundred million numbers take seconds on
a host, and a judge draws the same seed several times. What a device cannot do is done on the host, and kept for its seed.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import torch
from torch.overrides import TorchFunctionMode

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.judging.errors.comparison import bits
from rlkernel.evaluator.judging.references.reference_calls import mapped, tensors_of
from rlkernel.evaluator.program.codes import SIGNED
from rlkernel.evaluator.program.tensors import extent

T = TypeVar("T")
HOST = torch.device("cpu")
SLOW_SECONDS = 0.02
"""How much longer a draw takes than a copy of it, at least, if it is kept."""
COPIED_PER_SECOND = 2e9
"""Bytes that are copied between the host and a GPU in a second, at least."""
KEPT_SEEDS = 4
"""How many draws are kept: a stay has one or two seeds at a time, and comes back to those of its first round."""
KEPT_BYTES = 2 << 30
"""The memory of the host that they may take together, in bytes."""
_EMPTY = (torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty, torch.Tensor.new_empty_strided)


class Placing:
    """Makes what a reference's file makes on a device: there, or on the host where the first call fails there, because the file
    puts its own tensors of the host beside those that it makes. What the host draws differs from what the device draws, so that
    the first call decides for all. `within`: the context of a call on the device, by default one in which it is the default."""

    def __init__(self, device: torch.device, within: Callable[[], AbstractContextManager[Any]] | None = None) -> None:
        self.device = device
        self.on_host: bool | None = None
        """None before the first call."""
        self._within = within or (lambda: device)

    def __call__(self, make: Callable[[], T]) -> T:
        """Raises BrokenReference."""
        if self.on_host:
            return make()
        try:
            with self._within():
                made = make()
        except BrokenReference as error:
            if self.on_host is False or isinstance(error.__cause__, torch.OutOfMemoryError):
                raise
            made = make()
            self.on_host = True
            return made
        self.on_host = False
        return made


class Draws:
    """Draws a problem's inputs from seeds, all of their tensors on one device. The same seed gives the same bits.

    Where the first draw is slow, because a host makes it, each draw is kept there with its seed, and copied when the seed is
    asked for again. None is kept on a GPU, where a candidate's kernels may write.
    """

    def __init__(self, draw: Callable[[int], list[Any]], device: torch.device) -> None:
        self._draw = draw
        self._device = device
        self._placing = Placing(device, lambda: self._everything() if self._mixed else device)
        self._mixed = True
        """Whether the last draw named a device or left memory unfilled, so that each call of torch must be looked at."""
        self._keeps: bool | None = None
        """Whether draws are kept; None before the first one."""
        self._kept: OrderedDict[int, list[Any]] = OrderedDict()

    def __call__(self, seed: int) -> list[Any]:
        """Arguments of forward, in memory of their own. Raises BrokenReference."""
        if self._device.type == HOST.type:
            return self._placed(self._draw(seed))
        if seed in self._kept:
            return self._placed(self._kept[seed])
        made = self._first(seed) if self._keeps is None else self._made(seed)
        if self._keeps:
            self._keep(seed, made)
        return self._placed(made)

    def ready(self, seed: int) -> None:
        """Make what is kept of a seed, if anything is, so that each draw of it is as fast as the next one."""
        if self._keeps and seed not in self._kept:
            self._keep(seed, self._made(seed))

    def forget(self) -> None:
        """Give back the memory of the draws that are kept."""
        self._kept.clear()

    @contextmanager
    def _everything(self) -> Iterator[None]:
        with everything_on(self._device) as looking:
            yield
        self._mixed = looking.found

    def _made(self, seed: int) -> list[Any]:
        return self._placing(lambda: self._draw(seed))

    def _first(self, seed: int) -> list[Any]:
        """The first draw, which decides where all are made, and whether they are kept. One that is made on the device is made
        twice: other bits, as sums in no order give them, would look as if a candidate had changed its inputs. Where it is slow
        there, as a loop over single elements is, the host may be faster."""
        made, seconds = self._timed(seed)
        if all(tensor.device.type == self._device.type for tensor in tensors_of(made)):
            again, on_device = self._timed(seed)  # before, libraries were loaded
            seconds = min(seconds, on_device)
            alike = _same(made, again)
            del again
            if not alike or _is_slow(seconds, made):
                made, seconds = self._on_host(seed, made, seconds if alike else math.inf)
        self._keeps = _is_slow(seconds, made) and bytes_of(made) <= KEPT_BYTES
        return made

    def _on_host(self, seed: int, made: list[Any], seconds: float) -> tuple[list[Any], float]:
        """The draw of the host, and its seconds, if it is faster than what was `made` in so many; then it draws from now on. A
        file that does not run there stays where it runs."""
        self._placing.on_host = True
        try:
            drawn, on_host = self._timed(seed)
        except BrokenReference:
            drawn, on_host = made, math.inf
        if on_host < seconds:
            return drawn, on_host
        self._placing.on_host = False
        return made, seconds

    def _timed(self, seed: int) -> tuple[list[Any], float]:
        """A draw, and the seconds that the host takes for it."""
        begun = time.perf_counter()
        made = self._made(seed)
        return made, time.perf_counter() - begun

    def _placed(self, made: list[Any]) -> list[Any]:
        moved: list[Any] = mapped(made, lambda tensor: placed(tensor, self._device))
        return moved

    def _keep(self, seed: int, made: list[Any]) -> None:
        """Keep copies of a draw in place of the oldest ones, unless it is too large, as one seed's may be. The file may write to
        its own tensors when it draws again."""
        size = bytes_of(made)
        if size > KEPT_BYTES:
            return
        while self._kept and (len(self._kept) >= KEPT_SEEDS or size + sum(map(bytes_of, self._kept.values())) > KEPT_BYTES):
            self._kept.popitem(last=False)
        self._kept[seed] = mapped(made, lambda tensor: _copied(tensor, HOST))


@contextmanager
def everything_on(device: torch.device) -> Iterator[_OnDevice]:
    """Inside, tensors are made on `device` also where the CPU is named, and those that exist stay where they are.

    What can only be done on a host raises as torch raises it, e.g. `numpy()` of a tensor on a GPU. Memory that nobody fills holds
    other numbers for each seed, and the same ones for the same.
    """
    with device, _OnDevice(device) as looking:
        yield looking


class _OnDevice(TorchFunctionMode):
    """Puts `device` in the place of the CPU in each call of torch."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device
        self._both = False
        """Whether the device was named, so that a copy on the CPU is another tensor."""
        self.found = False
        """Whether there was anything to do."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        named = {_type_named(value) for value in (*args, *kwargs.values())} - {None}
        self.found |= bool(named) or func is torch.Tensor.cpu or func in _EMPTY
        self._both |= func is torch.Tensor.cuda or bool(named - {HOST.type})
        to_host = func is torch.Tensor.cpu or (func is torch.Tensor.to and HOST.type in named)
        if to_host and self._both:
            raise RuntimeError("the file uses both the CPU and another device")
        if func is torch.Tensor.cpu:
            return args[0]
        made = func(*map(self._here, args), **{key: self._here(value) for key, value in kwargs.items()})
        return _filled(made) if func in _EMPTY else made

    def _here(self, value: Any) -> Any:
        return self._device if _type_named(value) == HOST.type else value


def _type_named(value: Any) -> str | None:
    """The type of the device that an argument names; None for any other argument."""
    if isinstance(value, torch.device):
        return value.type
    if isinstance(value, str) and value.partition(":")[0] in ("cpu", "cuda"):
        return value.partition(":")[0]
    return None


def _filled(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, full of random numbers; of floating-point numbers, none is infinite or NaN."""
    memory = tensor.detach()
    if tensor.is_complex() or (tensor.is_floating_point() and tensor.itemsize > 1):
        memory.normal_()
    elif tensor.is_floating_point():  # a code of eight bits: the largest numbers of all of them begin at 0x7c
        memory.view(torch.uint8).random_(0, 0x70)
    else:
        memory.view(SIGNED.get(tensor.dtype, tensor.dtype)).random_()
    return tensor


def placed(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The tensor itself where it is on the device, else a copy there."""
    return tensor if tensor.device.type == device.type else _copied(tensor, device)


def _copied(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A copy on a device that lies in memory as the given tensor does: what is expanded stays so."""
    if tensor.layout is not torch.strided or not tensor.numel():
        return tensor.detach().to(device, copy=True)
    span = tensor.detach().as_strided((extent(tensor.shape, tensor.stride()),), (1,))
    return span.to(device, copy=True).as_strided(tensor.shape, tensor.stride(), 0)


def _is_slow(seconds: float, made: list[Any]) -> bool:
    """Whether a draw takes so long that it is worth keeping."""
    return seconds > SLOW_SECONDS + bytes_of(made) / COPIED_PER_SECOND


def _same(one: list[Any], other: list[Any]) -> bool:
    """Whether two draws hold the same bits. A device is waited for."""
    pairs = zip(tensors_of(one), tensors_of(other), strict=True)
    return all(torch.equal(bits(a), bits(b)) for a, b in pairs)


def bytes_of(made: list[Any]) -> int:
    """The memory that the tensors among some arguments take together."""
    return sum(extent(t.shape, t.stride()) * t.itemsize for t in tensors_of(made))
