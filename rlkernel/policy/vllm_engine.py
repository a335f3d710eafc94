"""Sampling with vLLM (`pip install rlkernel[vllm]`). Unverified: no vLLM was run. Written against vLLM's offline interface as TRL
uses it for a model in the trainer's own process.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import tempfile
from collections.abc import Sequence
from typing import Any

from rlkernel.errors import UsageError
from rlkernel.policy.engine import Batches, Request, Sample, check_temperature
from rlkernel.policy.replica import merged, plain_model


class VllmEngine(Batches):
    """See `rlkernel.policy.engine.Engine`; unverified. `advance` returns all that joined. vLLM draws with its own generator, so
    that a sample is a function of weights, context and seed only as far as vLLM's kernels do not depend on the batch."""

    def __init__(
        self, model: Any, tokenizer: Any, stop_ids: frozenset[int], temperature: float, *, slots: int, memory: float = 0.4
    ) -> None:
        """memory: share of the GPU's memory for vLLM. Raises UsageError where vLLM is not installed."""
        super().__init__(slots)
        check_temperature(temperature)
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"  # its model is reached for when weights change
        if importlib.util.find_spec("vllm") is None:
            raise UsageError("engine 'vllm' needs the package vllm: pip install 'rlkernel[vllm]', or use engine='auto'")
        self._vllm = importlib.import_module("vllm")
        self._source = model
        self._stop_ids = stop_ids
        self._temperature = temperature
        plain = plain_model(model)
        with tempfile.TemporaryDirectory() as directory:
            plain.config.save_pretrained(directory)
            tokenizer.save_pretrained(directory)
            self._llm = self._vllm.LLM(
                model=directory,
                load_format="dummy",
                dtype="bfloat16",
                max_num_seqs=slots,
                gpu_memory_utilization=memory,
                enable_prefix_caching=True,
                logprobs_mode="processed_logprobs",
            )
        self.refresh()

    def refresh(self) -> None:
        """See `Engine`."""
        self.check_idle()
        inner = self._llm.llm_engine.model_executor.driver_worker.model_runner.model
        for name, tensor in merged(plain_model(self._source)):
            inner.load_weights([(name, tensor.detach())])
        self._llm.reset_prefix_cache()

    def advance(self, joining: Sequence[Request], tokens: int) -> list[Sample]:
        """See `Engine`."""
        batch = self.take(joining)
        if not batch:
            return []
        outputs = self._llm.generate(
            [{"prompt_token_ids": list(request.context_ids)} for request in batch],
            [
                self._vllm.SamplingParams(
                    temperature=self._temperature,
                    top_p=1.0,
                    top_k=-1,
                    seed=request.seed % 2**63,
                    max_tokens=request.budget,
                    stop_token_ids=sorted(self._stop_ids),
                    ignore_eos=True,  # the stop tokens are ours
                    logprobs=0,
                    detokenize=False,
                )
                for request in batch
            ],
            use_tqdm=False,
        )
        return [self._sample(request, output.outputs[0]) for request, output in zip(batch, outputs, strict=True)]

    def _sample(self, request: Request, output: Any) -> Sample:
        ids = tuple(output.token_ids)
        logprobs = tuple(entry[token].logprob for token, entry in zip(ids, output.logprobs, strict=True))
        return Sample(request.key, ids, logprobs, "stop" if ids[-1] in self._stop_ids else "length")
