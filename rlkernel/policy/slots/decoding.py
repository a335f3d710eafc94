"""Borrows a model that is also trained for sampling: its mode, its attention and the CPU's threads are put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

SMALL = 20_000_000
"""A model with fewer parameters is sampled from, and trains, faster on one thread than on several."""


@contextmanager
def one_thread_if_small(model: Any) -> Iterator[None]:
    """Use one thread to sample from a small model on a CPU, and to train it. A second thread would wait more than work, and
    evaluations need the cores: steps of 32 rows of a million parameters took 12.1 ms with one thread and 13.7 ms with two, at
    twice the CPU time. While others have the cores, threads that wait for each other keep theirs busy: the contexts of 32
    conversations of three turns took 0.12 s of CPU time with one thread, and 1.3 to 3.4 s with two. Two steps of three runs
    took 61 s with one thread and 66 s with two."""
    threads = torch.get_num_threads()
    if model.device.type == "cpu" and model.num_parameters() < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def for_decoding(model: Any, attention: str) -> Iterator[None]:
    """Put the model into evaluation mode, with the attention called `attention`."""
    training, before = model.training, model.config._attn_implementation
    model.eval()
    model.config._attn_implementation = attention
    try:
        yield
    finally:
        model.config._attn_implementation = before
        model.train(training)
