"""The small policy: a Qwen3-architecture model of about a million parameters and its byte-level BPE tokenizer.

The weights in `small/` come from `python -m experiments.cold_start`. They are stored in float16 and loaded in float32, because
reinforcement learning's updates would be lost in half precision.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SMALL = Path(__file__).parent / "small"
SHARD = "15MB"
"""The largest file of weights."""
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
"""What a directory with weights has: all of them in one file, or a list of several files."""
START, END, PAD = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
VOCABULARY = 1024
CONTEXT = 2048
"""The number of positions of the rotary embedding, unless a tokenizer is built for another one."""
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
PIECES = r"\d|[^\d\n]+\n?|\n+"
"""Merges of the tokenizer stay inside these pieces: single digits, so that constants are copied digit by digit, and runs without
digits up to the line's end, so that a frequent line of code is one token."""


def build_tokenizer(texts: Iterable[str], vocabulary: int = VOCABULARY, context: int = CONTEXT) -> Any:
    """A ChatML tokenizer trained on `texts`; any text round-trips, since all bytes are in the vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[START],
        chat_template=CHAT_TEMPLATE,
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )


def build_model(
    tokenizer: Any, *, seed: int = 0, width: int = 128, layers: int = 4, heads: int = 4, feed_forward: int = 384
) -> Any:
    """A model with random weights drawn from `seed`, float32, tied embeddings, for contexts as long as the tokenizer's."""
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=width,
            intermediate_size=feed_forward,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            head_dim=width // heads,
            max_position_embeddings=tokenizer.model_max_length,
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
        )
    )


def save_small(model: Any, tokenizer: Any, directory: Path = SMALL) -> None:
    """Write weights (float16) and tokenizer as any Hugging Face loader reads them, in files of at most 15 MB, which can be sent
    one by one. `model` is left as it is."""
    directory.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.detach().to(torch.float16) for name, tensor in model.state_dict().items()}
    model.save_pretrained(directory, state_dict=weights, max_shard_size=SHARD)
    tokenizer.save_pretrained(directory)


def load_small(directory: Path = SMALL, dtype: torch.dtype = torch.float32) -> tuple[Any, Any]:
    """(model with weights in `dtype`, tokenizer). Raises FileNotFoundError, which names the command that makes the weights."""
    if not any((directory / name).is_file() for name in WEIGHTS):
        raise FileNotFoundError(f"{directory} holds no {WEIGHTS[0]}; make it with `python -m experiments.cold_start`")
    transformers.utils.logging.disable_progress_bar()  # a line of its own among a command's words
    model = Qwen3ForCausalLM.from_pretrained(directory, dtype=dtype, local_files_only=True)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(directory, local_files_only=True)
    return model, tokenizer
