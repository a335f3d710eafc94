"""`Run.model` to a model and a tokenizer."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlkernel.errors import UsageError
from rlkernel.policy.small import load_small


def load_model(name: str) -> tuple[Any, Any]:
    """(model in float32, tokenizer) of `small`, a local directory, or a name on the Hugging Face hub.

    float32, because updates at learning rates around 1e-6 are lost in half precision. Raises UsageError, in one line.
    """
    transformers.utils.logging.disable_progress_bar()  # it would write into ours
    if name == "small":
        try:
            return load_small()
        except FileNotFoundError as error:
            raise UsageError(str(error)) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(
            f"model {name!r} cannot be loaded ({reason}): give `small`, the directory of a causal language model, or its "
            "name on the Hugging Face hub"
        ) from error
    return model, tokenizer
