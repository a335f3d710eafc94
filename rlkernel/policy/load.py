"""Loads what `Run.model` names: a model and its tokenizer, with LoRA adapters where they are asked for."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import safetensors
import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from rlkernel.errors import UsageError, first_line
from rlkernel.policy.attention import without_plans
from rlkernel.policy.small import SMALL, load_small

CONNECT_SECONDS = 10.0
"""The time that the hub has for its first answer."""
BROKEN = (
    *(OSError, ValueError, LookupError, RuntimeError, ImportError, TypeError, AttributeError, ArithmeticError),
    *(safetensors.SafetensorError, StrictDataclassError),
)
"""What a model that is absent, damaged, of an unknown kind, or without a package that it needs, raises while it is loaded. A
value of config.json that makes no sense raises what the first line that uses it happens to raise."""


def load_model(name: str, *, weights: str = "float32", lora_rank: int = 0, lora_alpha: float = 32.0) -> tuple[Any, Any]:
    """Load (model, tokenizer) of `small`, a local directory, or a name on the Hugging Face hub.

    What trains is in `weights`, one of `rlkernel.config.WEIGHTS`: the whole model; or, with `lora_rank`, float32 adapters on all
    its linear layers, over weights that are frozen in bfloat16 (and never were float32). Raises UsageError, in one line.
    """
    transformers.utils.logging.disable_progress_bar()  # it would write into ours
    without_plans()
    if lora_rank:
        _check_peft()  # before anything is loaded
    dtype = torch.bfloat16 if lora_rank or weights == "bfloat16" else torch.float32
    with _one_line(name) as cached:
        if name == "small":
            model, tokenizer = load_small(dtype=dtype)
        else:
            tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=cached)
            model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, local_files_only=cached)
    return (add_lora(model, lora_rank, lora_alpha) if lora_rank else model), tokenizer


def load_config(name: str) -> Any:
    """The configuration of a model that `load_model` can load, without its weights. Raises UsageError, in one line, also
    where no model can be made of it."""
    with _one_line(name, config_alone=True) as cached:
        config = AutoConfig.from_pretrained(SMALL if name == "small" else name, local_files_only=cached)
        meta_model(config)
        if (positions := getattr(config.get_text_config(), "max_position_embeddings", 0)) < 1:
            raise ValueError(f"max_position_embeddings of its config.json is {positions}")
        return config


def meta_model(config: Any) -> Any:
    """The model of a configuration, without memory for its weights."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def check_model(name: str, *, lora_rank: int = 0) -> None:
    """Raise UsageError for a model that `load_model` cannot load, as far as its configuration, its tokenizer and the headers of
    local weights tell. Loads no weights."""
    if lora_rank:
        _check_peft()
    with _one_line(name) as cached:
        if name == "small":
            load_small()
            return
        config = AutoConfig.from_pretrained(name, local_files_only=cached)
        AutoTokenizer.from_pretrained(name, local_files_only=cached)
        meta_model(config)
        for path in Path(name).glob("*.safetensors"):
            with safetensors.safe_open(path, framework="pt") as weights:
                weights.keys()  # the header, which must fit the length of the file
        if Path(name).is_dir() and not [*Path(name).glob("*.safetensors"), *Path(name).glob("*.bin")]:
            raise ValueError("the directory has no weights: neither *.safetensors nor *.bin")


_MODELS = "`small`, the directory of a causal language model, or its name on the Hugging Face hub"
"""What `--model` takes."""


@contextmanager
def _one_line(name: str, *, config_alone: bool = False) -> Iterator[bool]:
    """Raise UsageError for what Transformers raises about a model inside. Yields whether to look into the cache alone.

    config_alone: whether nothing but the configuration is asked for."""
    if _is_path(name) and not Path(name).is_dir():
        what = "a file, not a directory" if Path(name).exists() else "no such directory"
        raise UsageError(f"--model {name!r}: {what}; give {_MODELS}")
    # Libraries ask a hub that is out of reach again and again, for every file, before they look into the cache.
    unreachable = None if name == "small" or Path(name).is_dir() else _unreachable()
    try:
        yield unreachable is not None
    except BROKEN as error:
        if name == "small":
            raise UsageError(first_line(error)) from error
        reason = _reason(error)
        if unreachable is not None:
            reason = f"it is no directory, not in the cache, and whether the hub has it is unknown: {unreachable}"
        raise UsageError(
            f"--model {name!r} cannot be loaded ({reason}): give {_MODELS}"
            + ("; config.json alone is enough of a directory" if config_alone else "")
        ) from error


def _reason(error: BaseException) -> str:
    """What was wrong, in a line: of a check of config.json's fields both lines, since the second names the value.

    >>> _reason(ValueError("no weights\\nbut more lines")), _reason(KeyError("yes")), _reason(ZeroDivisionError())
    ('no weights', "KeyError: 'yes'", 'ZeroDivisionError')
    """
    if isinstance(error, StrictDataclassError):
        return "config.json: " + " ".join(str(error).split())
    said, kind = first_line(error), type(error).__name__
    speaks = isinstance(error, (OSError, ValueError, RuntimeError, ImportError))
    return said if said and speaks else ": ".join(filter(None, (kind, said)))


def _is_path(name: str) -> bool:
    """Whether a name can only be that of a directory: the hub's names are `name` or `owner/name`.

    >>> [_is_path(name) for name in ("/models/mine", "./mine", "..", "a/b/c", "runs/", "owner/name", "name")]
    [True, True, True, True, True, False, False]
    """
    return name.startswith(("/", ".", "~")) or name.endswith("/") or name.count("/") > 1


def _unreachable() -> str | None:
    """Say why the Hugging Face hub cannot be asked, after one request; None where it answers, whatever it says."""
    if huggingface_hub.constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE forbids to ask the hub"
    address = huggingface_hub.constants.ENDPOINT
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=CONNECT_SECONDS).close()
    except (urllib.error.HTTPError, ssl.SSLError):
        return None
    except OSError as error:
        reason = getattr(error, "reason", error)
        # Certificates are the hub library's own affair.
        return None if isinstance(reason, ssl.SSLError) else f"{address} cannot be reached ({reason})"
    return None


def add_lora(model: Any, rank: int, alpha: float, *, seed: int = 0) -> Any:
    """Freeze `model` and put float32 adapters on all its linear layers but the output projection, whose product is 0 at first.

    seed: draws the random halves of the adapters. Raises UsageError without the package peft.
    """
    _check_peft()
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM")
    with torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []):
        torch.manual_seed(seed)
        # peft keeps adapters in float32 over a base in half precision (autocast_adapter_dtype).
        return get_peft_model(model, config)


def _check_peft() -> None:
    try:
        import peft  # noqa: F401
    except ModuleNotFoundError as error:
        raise UsageError("Run.lora_rank needs the package peft: pip install 'rlkernel[lora]', or set lora_rank to 0") from error
