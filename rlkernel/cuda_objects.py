"""What host code sees of a GPU where there is none, or where nothing runs on it: streams, events, generators, and answers."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch


class Stream:
    """A stream without effect: there is one order, and work on side streams is part of it."""

    cuda_stream = 0
    device = torch.device("cuda", 0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def _no_effect(self, *args: Any, **kwargs: Any) -> None:
        return None

    synchronize = wait_stream = wait_event = _no_effect

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        return event or Event()


ELAPSED_MS = 1.0
"""What lies between any two events. A device's time is not known where nothing runs on one."""


class Event:
    """An event of no stream."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs

    def _no_effect(self, *args: Any, **kwargs: Any) -> None:
        return None

    record = wait = synchronize = _no_effect

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        """The same for all, so that who compares configurations by hand takes the first one."""
        del other
        return ELAPSED_MS


class Generator(torch.Generator):
    """A generator of its own, on any device: it can be made and seeded, and no operator that is recorded takes it."""

    def __new__(cls, device: Any = None) -> Generator:
        del device
        return super().__new__(cls, "cpu")  # type: ignore[call-arg]


_STREAM = Stream()


def properties(*, name: str, arch: int, memory: int, processors: int, l2: int, shared: int) -> SimpleNamespace:
    """What `torch.cuda.get_device_properties` tells of a card. arch: its compute capability, such as 90."""
    return SimpleNamespace(
        name=name,
        major=arch // 10,
        minor=arch % 10,
        total_memory=memory,
        multi_processor_count=processors,
        L2_cache_size=l2,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=shared,
        shared_memory_per_multiprocessor=shared,
    )


def answers(card: SimpleNamespace) -> dict[str, Any]:
    """What `torch.cuda` answers where a card with these properties is the one GPU."""
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "get_device_name": lambda device=None: card.name,
        "get_device_capability": lambda device=None: (card.major, card.minor),
        "get_device_properties": lambda device=None: card,
        "get_arch_list": lambda: [f"sm_{card.major}{card.minor}"],
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_tf32_supported": lambda: True,
        "is_current_stream_capturing": lambda: False,
        "synchronize": lambda device=None: None,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "Stream": Stream,
        "Event": Event,
        "stream": lambda stream: nullcontext(),
        "current_stream": lambda device=None: _STREAM,
        "default_stream": lambda device=None: _STREAM,
        "set_stream": lambda stream: None,
        "device": lambda device: nullcontext(),
        "device_of": lambda tensor: nullcontext(),
        "empty_cache": lambda: None,
        "ipc_collect": lambda: None,
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "memory_reserved": lambda device=None: 0,
        "max_memory_reserved": lambda device=None: 0,
        "reset_peak_memory_stats": lambda device=None: None,
        "mem_get_info": lambda device=None: (card.total_memory, card.total_memory),
        "_lazy_init": lambda: None,
    }
