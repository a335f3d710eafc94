"""The policy: many trajectories awaiting one model."""

from __future__ import annotations

import copy
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM, Qwen3Config, Qwen3ForCausalLM

from rlkernel.busy import Busy
from rlkernel.errors import UsageError
from rlkernel.policy.batched import GenerateEngine
from rlkernel.policy.engine import Engine
from rlkernel.policy.hf import HFPolicy, open_engine, open_policy, stop_ids
from rlkernel.policy.slots.engine import SlotEngine
from rlkernel.types import Completion
from tests.policy import sampling

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def generate_all(policy: HFPolicy, prompts: list[tuple[int, ...]]) -> list[Completion | None]:
    found: dict[int, Completion | None] = {}

    async def one(i: int) -> None:
        found[i] = await policy.generate(prompts[i], seed=i)

    async with anyio.create_task_group() as tasks:
        for i in range(len(prompts)):
            tasks.start_soon(one, i)
    return [found[i] for i in range(len(prompts))]


async def test_concurrent_requests_share_a_batch_and_are_reproducible(tiny_model: Any, tiny_tokenizer: Any) -> None:
    rows: list[int] = []
    hook = tiny_model.model.embed_tokens.register_forward_hook(lambda _, inputs, __: rows.append(inputs[0].shape[0]))
    async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=12) as policy:
        prompts = [policy.encode_prompt(f"problem {i}") for i in range(6)]
        first = await generate_all(policy, prompts)
        policy.refresh()
        again = await generate_all(policy, prompts)
        assert policy.busy.seconds > 0
    hook.remove()
    assert rows[0] == 6
    assert [c and c.token_ids for c in first] == [c and c.token_ids for c in again]
    for completion in first:
        assert completion is not None
        assert completion.text == tiny_tokenizer.decode(list(completion.token_ids), skip_special_tokens=True)
        assert len(completion.token_ids) == 12 or completion.token_ids[-1] == tiny_tokenizer.eos_token_id


async def test_a_request_joins_while_others_are_in_flight(tiny_model: Any, tiny_tokenizer: Any) -> None:
    # The second asks only after the first has been sampling for some tokens, and both get their own result.
    async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=100, chunk=4) as policy:
        prompt = policy.encode_prompt("x")
        alone = await policy.generate(prompt, seed=1)
        tokens = 0
        started = anyio.Event()

        def count(*_: object) -> None:
            nonlocal tokens
            tokens += 1
            if tokens == 10:
                anyio.from_thread.run_sync(started.set)

        hook = tiny_model.model.embed_tokens.register_forward_hook(count)
        found: dict[str, Completion | None] = {}

        async def early() -> None:
            found["early"] = await policy.generate(prompt, seed=0)

        async def late() -> None:
            await started.wait()
            found["late"] = await policy.generate(prompt, seed=1)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(early)
            tasks.start_soon(late)
        hook.remove()
    assert alone is not None and found["late"] is not None
    assert found["late"].token_ids == alone.token_ids


async def test_a_gathering_policy_waits_for_most_trajectories(tiny_model: Any, tiny_tokenizer: Any) -> None:
    rows: list[int] = []
    hook = tiny_model.model.embed_tokens.register_forward_hook(lambda _, inputs, __: rows.append(inputs[0].shape[0]))
    evaluating = Busy()
    async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=3, gather=evaluating) as policy:
        prompts = [policy.encode_prompt(f"problem {i}") for i in range(4)]
        async with anyio.create_task_group() as tasks:
            with evaluating(), evaluating():
                # Two evaluations in flight: three waiting trajectories are too few to start.
                for i in range(3):
                    tasks.start_soon(policy.generate, prompts[i], i)
                await anyio.wait_all_tasks_blocked()
                assert rows == []
            # The evaluations end without another request, and the three start.
        assert rows[0] == 3
        with evaluating(), evaluating():
            async with anyio.create_task_group() as tasks:
                for i in range(4):
                    tasks.start_soon(policy.generate, prompts[i], i)
    hook.remove()


async def test_nothing_is_sampled_while_nobody_waits(
    tiny_model: Any, tiny_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[int] = []
    advance = HFPolicy._advance

    def record(self: HFPolicy, joining: Any) -> Any:
        joined.append(len(joining))
        return advance(self, joining)

    monkeypatch.setattr(HFPolicy, "_advance", record)
    async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=3) as policy:
        await policy.generate((5, 6), seed=0)
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
    assert joined == [1]


async def test_a_full_context_is_data(tiny_model: Any, tiny_tokenizer: Any) -> None:
    # 512 positions: 412 + 100 fit, one token more does not.
    async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=100) as policy:
        assert await policy.generate((5,) * 413, seed=0) is None
        assert await policy.generate((5,) * 412, seed=0) is not None


async def test_a_cancelled_trajectory_leaves_the_others_alone(tiny_model: Any, tiny_tokenizer: Any) -> None:
    async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=20, chunk=2) as policy:
        prompt = policy.encode_prompt("x")
        expected = await policy.generate(prompt, seed=3)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await policy.generate(prompt, seed=4)
        assert scope.cancelled_caught
        again = await policy.generate(prompt, seed=3)
    # Log-probabilities may differ by rounding: the cancelled row was still in the batch.
    assert expected is not None and again is not None and again.token_ids == expected.token_ids


async def test_a_failing_model_fails_the_run(tiny_model: Any, tiny_tokenizer: Any) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(IndexError), flatten_subgroups=True):
        async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=4) as policy:
            await policy.generate((10**6,), seed=0)


async def test_turns_are_closed_once(tiny_model: Any, tiny_tokenizer: Any) -> None:
    async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=4) as policy:
        feedback = tiny_tokenizer.decode(list(policy.encode_feedback("slow")))
        assert feedback == "\n<|im_start|>user\nslow<|im_end|>\n<|im_start|>assistant\n"
        assert tiny_tokenizer.decode(list(policy.encode_feedback("slow", truncated=True))) == "<|im_end|>" + feedback


def test_stop_tokens_come_from_model_and_tokenizer(tiny_model: Any, tiny_tokenizer: Any) -> None:
    tiny_model.generation_config.eos_token_id = [0, 7]
    assert stop_ids(tiny_model, tiny_tokenizer) == {0, 7, tiny_tokenizer.eos_token_id}


def test_a_model_without_a_stop_token_is_refused(tiny_model: Any) -> None:
    class Nameless:
        eos_token_id = None

        def get_vocab(self) -> dict[str, int]:
            return {"a": 0}

    tiny_model.generation_config.eos_token_id = None
    with pytest.raises(UsageError, match=r"names an end-of-sequence token: set tokenizer\.eos_token"):
        stop_ids(tiny_model, Nameless())


def opened(engine: str, model: Any) -> Engine:
    return open_engine(engine, model, frozenset(), 1.0, slots=4, copy=False)


def test_auto_takes_slots_where_the_attention_is_plain(tiny_model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(opened("auto", tiny_model), SlotEngine)
    assert isinstance(opened("generate", tiny_model), GenerateEngine)
    assert capsys.readouterr().err == ""


def test_auto_takes_generate_for_a_sliding_window_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    sizes: dict[str, Any] = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 2, "num_key_value_heads": 1}
    window = Qwen3Config(**sizes, head_dim=8, use_sliding_window=True, sliding_window=16, max_window_layers=1)
    for model in (Qwen3ForCausalLM(window), MistralForCausalLM(MistralConfig(**sizes, sliding_window=16))):
        assert isinstance(opened("auto", model), GenerateEngine)
        assert "sampling with `generate`, which is slower than slots: " in capsys.readouterr().err
        with pytest.raises(UsageError, match=r"engine 'slots' cannot sample from this model: .*sliding"):
            opened("slots", model)


async def test_an_unknown_engine_is_refused(tiny_model: Any, tiny_tokenizer: Any) -> None:
    with pytest.raises(ValueError, match="engine is 'fast': use one of auto, slots, generate"):
        async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=4, engine="fast"):
            pass


@pytest.mark.parametrize("engine", ["slots", "generate"])
async def test_a_completion_in_parts_is_the_whole_as_long_as_the_weights_stay(
    engine: str, tiny_model: Any, tiny_tokenizer: Any
) -> None:
    """Parts of 7, 1 and at most 20 tokens; the random numbers go on where they were."""
    async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=28, engine=engine) as policy:
        policy.refresh(3)
        prompt = policy.encode_prompt("problem")
        for seed in range(4):
            whole = await policy.generate(prompt, seed)
            part: Completion | None = None
            stops = []
            for tokens in (7, 1, None):
                if part is None or part.stop == "paused":
                    part = await policy.generate(prompt, seed, part, tokens)
                    assert part is not None
                    stops.append(part.stop)
            assert whole is not None and part is not None
            assert stops[:-1] == ["paused"] * (len(stops) - 1) and stops[-1] == whole.stop
            assert (part.token_ids, part.text, part.sampled_at) == (whole.token_ids, whole.text, (3,) * len(whole.token_ids))
            assert part.logprobs == pytest.approx(whole.logprobs, abs=2e-5)
        # A part that fills the whole length is not one that could go on.
        full = await policy.generate(prompt, 0, None, 28)
        assert full is not None and full.stop == "length" and len(full.token_ids) == 28


@pytest.mark.parametrize("engine", ["slots", "generate"])
async def test_a_completion_goes_on_with_new_weights(engine: str, tiny_model: Any, tiny_tokenizer: Any) -> None:
    """Every token has the log-probability that its own weights give for all that comes before it."""
    async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=12, engine=engine, copy=True) as policy:
        policy.refresh(0)
        prompt = policy.encode_prompt("problem")
        begun = await policy.generate(prompt, 1, None, 5)
        with torch.no_grad():
            old = copy.deepcopy(tiny_model)
            for parameter in tiny_model.parameters():
                parameter.mul_(1.2)
        policy.refresh(1)
        whole = await policy.generate(prompt, 1, begun)
    assert begun is not None and whole is not None
    assert whole.token_ids[:5] == begun.token_ids and whole.sampled_at == (0,) * 5 + (1,) * (len(whole.token_ids) - 5)
    by_weights = [sampling.fresh_logprobs(model, prompt, whole.token_ids, 1.0) for model in (old, tiny_model)]
    assert whole.logprobs == pytest.approx([*by_weights[0][:5].tolist(), *by_weights[1][5:].tolist()], abs=2e-5)
    assert (by_weights[0] - by_weights[1]).abs().median() > 1e-2


async def test_where_nobody_trains_tokens_have_no_step(tiny_model: Any, tiny_tokenizer: Any) -> None:
    async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=4) as policy:
        completion = await policy.generate((5, 6), 0)
    assert completion is not None and completion.sampled_at == ()
