"""An engine around Transformers' own `generate`, for every causal language model.

All requests that wait are sampled as one batch, which ends with its longest completion; requests that come meanwhile wait for
the next batch.

Legend: B rows, L context tokens, T sampled tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor

from rlkernel.policy.draw import draw
from rlkernel.policy.engine import Request, Sample, check_idle, check_temperature, uniforms
from rlkernel.policy.replica import Replica, can_share


class _Draw(LogitsProcessor):  # type: ignore[misc]
    """Draws each row's next token itself and leaves `generate` no other. So a row's sample depends on its own seed, and
    log-probabilities are recorded without keeping the logits of all steps."""

    def __init__(self, requests: Sequence[Request], temperature: float, device: torch.device) -> None:
        longest = max(request.budget for request in requests)
        self.uniform_BT = torch.zeros((len(requests), longest), dtype=torch.float64)
        for row, request in zip(self.uniform_BT, requests, strict=True):
            row[: request.budget] = uniforms(request)
        self.uniform_BT = self.uniform_BT.to(device)
        self.temperature = temperature
        self.logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        ids_B, logprob_B = draw(scores, self.uniform_BT[:, len(self.logprobs)], self.temperature)
        self.logprobs.append(logprob_B)
        return torch.full_like(scores, float("-inf")).scatter(1, ids_B[:, None], 0.0)


class GenerateEngine:
    """An `rlkernel.policy.engine.Engine` whose `advance` samples one batch to its end, however many tokens that takes."""

    def __init__(
        self,
        model: Any,
        stop_ids: frozenset[int],
        temperature: float,
        *,
        slots: int = 128,
        copy: bool = False,
        rounding: torch.dtype | None = None,
        static: bool = False,
    ) -> None:
        """slots: the most rows of a batch. On a GPU, and with `copy`, the engine has its own copy of the weights (bfloat16 on a
        GPU). rounding: see `Replica`; it makes a copy. static: use a preallocated cache, and compile the step. Raises ValueError
        unless temperature > 0."""
        check_temperature(temperature)
        self.device = torch.device(model.device)
        on_gpu = self.device.type == "cuda"
        dtype = torch.bfloat16 if on_gpu else model.dtype
        shared = can_share(model) and not copy and rounding is None
        own = copy or on_gpu or rounding is not None or shared
        self._replica = Replica(model, self.device, dtype, rounding=rounding, shared=shared) if own else None
        self.model = self._replica.model if self._replica else model
        self.temperature = temperature
        self._stop_ids = stop_ids
        self._static = static
        self._slots = slots
        self._queue: list[Request] = []

    @property
    def active(self) -> int:
        """The number of requests that wait for the next batch."""
        return len(self._queue)

    @property
    def free(self) -> int:
        """The number of further requests that the next batch has room for."""
        return max(0, self._slots - len(self._queue))

    def refresh(self) -> None:
        """Take over the trainer's weights; see `Engine.refresh`."""
        check_idle(self)
        if self._replica:
            self._replica.refresh()

    @torch.no_grad()
    def advance(self, joining: Sequence[Request], tokens: int) -> list[Sample]:
        """Sample the next batch to its end; see `Engine.advance`."""
        self._queue += joining
        batch, self._queue = self._queue[: self._slots], self._queue[self._slots :]
        if not batch:
            return []
        training = self.model.training
        self.model.eval()
        try:
            return self._generate(batch)
        finally:
            self.model.train(training)

    def _generate(self, batch: list[Request]) -> list[Sample]:
        longest = max(len(request.context_ids) for request in batch)
        pads = [longest - len(request.context_ids) for request in batch]
        ids_BL = torch.tensor([(0,) * pad + request.context_ids for pad, request in zip(pads, batch, strict=True)])
        mask_BL = (torch.arange(longest) >= torch.tensor(pads)[:, None]).long()
        choose = _Draw(batch, self.temperature, self.device)
        config = GenerationConfig(
            max_new_tokens=max(request.budget for request in batch),
            do_sample=False,
            eos_token_id=sorted(self._stop_ids) or None,
            pad_token_id=0,
            cache_implementation="static" if self._static else None,
            disable_compile=not self._static,
        )
        sequences = self.model.generate(
            input_ids=ids_BL.to(self.device),
            attention_mask=mask_BL.to(self.device),
            generation_config=config,
            logits_processor=[choose],
        )
        ids_BT = sequences[:, longest:].tolist()
        logprob_BT = torch.stack(choose.logprobs, 1).tolist()
        return [self._cut(*row) for row in zip(batch, ids_BT, logprob_BT, strict=True)]

    def _cut(self, request: Request, ids: list[int], logprobs: list[float]) -> Sample:
        """The sample of one row, which `generate` carried on to the end of the whole batch: cut at its own end."""
        stop = next((i for i, token in enumerate(ids[: request.budget]) if token in self._stop_ids), None)
        length = request.budget if stop is None else stop + 1
        return Sample(request.key, tuple(ids[:length]), tuple(logprobs[:length]), "length" if stop is None else "stop")
