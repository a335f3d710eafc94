"""Loading models: what trains in which precision, adapters, and one line at once for a model that cannot be had."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlkernel.errors import UsageError
from rlkernel.policy import load
from rlkernel.policy.load import add_lora, check_model, load_config, load_model


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a hub that nobody answers for."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    return address


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the libraries are asked for; they have nothing."""
    seen: list[dict[str, Any]] = []

    def nothing(name: str, **options: Any) -> Any:
        seen.append({"name": name, **options})
        raise OSError("nothing here\nbut more lines")

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", nothing)
    return seen


def test_a_hub_out_of_reach_is_asked_once(closed: str, asked: list[dict[str, Any]]) -> None:
    with pytest.raises(UsageError) as told:
        load_model("nosuch/model")
    why = f"it is no directory, not in the cache, and whether the hub has it is unknown: {closed} cannot be reached ("
    start = f"--model 'nosuch/model' cannot be loaded ({why}"
    assert str(told.value).startswith(start) and "\n" not in str(told.value)
    assert asked == [{"name": "nosuch/model", "local_files_only": True}]


def test_the_variable_of_the_hub_is_respected(asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        UsageError, match="not in the cache, and whether the hub has it is unknown: HF_HUB_OFFLINE forbids to ask the hub"
    ):
        load_model("nosuch/model")


def test_a_configuration_says_that_it_is_enough(closed: str) -> None:
    with pytest.raises(UsageError, match=r"name on the Hugging Face hub; config\.json alone is enough of a directory$"):
        load_config("nosuch/model")


def test_a_directory_asks_nobody(closed: str, asked: list[dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be loaded \(nothing here\): give `small`, the directory"):
        load_model(str(tmp_path))
    assert asked == [{"name": str(tmp_path), "local_files_only": False}]


@pytest.mark.parametrize("name", ["/nope", "./nope", "../a/nope"])
def test_a_path_that_does_not_exist_asks_nobody(name: str, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "_unreachable", lambda: pytest.fail("the hub was asked"))
    for loading in (load_model, load_config, check_model):
        with pytest.raises(UsageError) as told:
            loading(name)
        assert str(told.value) == (
            f"--model '{name}': no such directory; give `small`, the directory of a causal language model, or its name on the "
            "Hugging Face hub"
        )
    assert asked == []


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hub that answers everything with 403."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_error(403)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        yield
        server.shutdown()


def test_a_hub_that_answers_is_left_to_the_libraries(refusing: None, asked: list[dict[str, Any]]) -> None:
    with pytest.raises(UsageError, match=r"cannot be loaded \(nothing here\)"):
        load_model("nosuch/model")
    assert asked == [{"name": "nosuch/model", "local_files_only": False}]


@pytest.mark.parametrize("ask", [check_model, load_model])
def test_a_model_whose_files_are_damaged_is_one_line(ask: Callable[[str], object], saved: str) -> None:
    check_model(saved)
    weights = Path(saved) / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"cannot be loaded \(.*\): give `small`, the directory of a causal") as told:
        ask(saved)
    assert "\n" not in str(told.value)
    weights.unlink()
    with pytest.raises(UsageError, match=r"cannot be loaded \(.*\): give"):
        ask(saved)
    weights.write_bytes(whole)
    (Path(saved) / "config.json").write_text('{"model_type": "nosuch"}')
    with pytest.raises(UsageError, match=r"cannot be loaded \(.*\): give"):
        ask(saved)


@pytest.mark.parametrize("ask", [check_model, load_model, load_config])
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hidden_size", "4k", r"config\.json: .*'hidden_size'.* got str \(value: '4k'\)"),
        ("num_attention_heads", 0, "ZeroDivisionError: "),
        ("hidden_act", "no", "KeyError: 'no'"),
    ],
)
def test_a_value_that_makes_no_sense_is_one_line(
    field: str, value: object, said: str, ask: Callable[[str], object], saved: str
) -> None:
    path = Path(saved) / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(UsageError, match=rf"cannot be loaded \({said}.*\): give `small`, the directory of a causal") as told:
        ask(saved)
    assert "\n" not in str(told.value)


def test_a_configuration_has_positions(saved: str) -> None:
    path = Path(saved) / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "max_position_embeddings": 0}))
    with pytest.raises(UsageError, match=r"cannot be loaded \(max_position_embeddings of its config\.json is 0\): give"):
        load_config(saved)


def test_a_model_is_looked_at_without_its_weights(saved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda *a, **k: pytest.fail("the weights were loaded"))
    check_model(saved)
    check_model("small")
    check_model(saved, lora_rank=2)


# --- adapters ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> str:
    tiny_model.save_pretrained(tmp_path)
    tiny_tokenizer.save_pretrained(tmp_path)
    return str(tmp_path)


def dtypes(model: Any, trains: bool) -> set[torch.dtype]:
    return {parameter.dtype for parameter in model.parameters() if parameter.requires_grad == trains}


def test_adapters_are_float32_over_frozen_bfloat16(saved: str) -> None:
    model, _ = load_model(saved, lora_rank=4, lora_alpha=8.0)
    assert (dtypes(model, True), dtypes(model, False)) == ({torch.float32}, {torch.bfloat16})
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    # Two halves for each of q, k, v, o, gate, up and down in each of the two layers; not the output projection.
    assert len(trained) == 2 * 7 * 2 and all("lora_" in name for name in trained)
    layer = model.get_base_model().model.layers[0].self_attn.q_proj
    assert layer.scaling["default"] == 8.0 / 4
    assert layer.lora_A["default"].weight.shape == (4, 64)


def test_without_lora_everything_trains_in_float32(saved: str) -> None:
    model, _ = load_model(saved)
    assert (dtypes(model, True), dtypes(model, False)) == ({torch.float32}, set())


def test_the_small_model_takes_adapters() -> None:
    model, tokenizer = load_model("small", lora_rank=2)
    assert (dtypes(model, True), dtypes(model, False)) == ({torch.float32}, {torch.bfloat16})
    assert tokenizer.eos_token == "<|im_end|>"


def test_adapters_do_not_change_the_model_at_first_nor_the_random_state(tiny_model: Any) -> None:
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        before = tiny_model(input_ids=ids).logits
        state = torch.random.get_rng_state()
        adapted = add_lora(tiny_model, 4, 8.0)
        assert torch.equal(torch.random.get_rng_state(), state)
        assert torch.equal(adapted(input_ids=ids).logits, before)


def test_a_missing_package_is_one_line(saved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(UsageError, match=r"Run\.lora_rank needs the package peft: pip install 'rlkernel\[lora\]'"):
        load_model(saved, lora_rank=4)
