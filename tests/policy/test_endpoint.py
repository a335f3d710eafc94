"""The client of OpenAI-compatible endpoints, against a local server that fails as told. No pause is really slept."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from rlkernel.config import to_json
from rlkernel.errors import UsageError
from rlkernel.policy.endpoint import Endpoint, EndpointConfig, open_endpoint, retry_after
from rlkernel.policy.writer import Answer, Exchange, NoAnswer
from tests.policy.scripted_endpoint import KEY, Scripted, completion, serving

SHOWN = [Exchange(Answer("first try", "stop"), "status: incorrect")]


def config(script: Scripted, **changes: Any) -> EndpointConfig:
    return EndpointConfig(**{"url": script.url, "model": "m", "attempts": 6, "timeout": 30.0, **changes})


def ask(script: Scripted, shown: Any = (), seed: int = 7, **changes: Any) -> tuple[Answer | None, list[float]]:
    """The answer, and the pauses before it."""
    pauses: list[float] = []

    async def body(endpoint: Endpoint) -> Answer | None:
        return await endpoint.write("Write a kernel.", shown, seed)

    return run(script, body, pauses, **changes), pauses


def run(
    script: Scripted, body: Callable[[Endpoint], Awaitable[Any]], pauses: list[float], spent: float = 0.0, **changes: Any
) -> Any:
    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def main() -> Any:
        async with open_endpoint(config(script, **changes), KEY, spent=spent, sleep=sleep, jitter=random.Random(0)) as endpoint:
            return await body(endpoint)

    return anyio.run(main)


def test_the_conversation_the_settings_and_the_key_are_sent() -> None:
    with serving(Scripted(lambda body: "hello")) as script:
        answer, pauses = ask(script, SHOWN, max_new_tokens=99, temperature=0.5)
    assert answer == Answer("hello", "stop", (), 100, 10, 0.0, 1)
    assert pauses == []
    assert script.keys == [f"Bearer {KEY}"]
    assert script.bodies == [
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "Write a kernel."},
                {"role": "assistant", "content": "first try"},
                {"role": "user", "content": "status: incorrect"},
            ],
            "max_tokens": 99,
            "temperature": 0.5,
            "seed": 7,
        }
    ]


def test_what_a_model_refuses_is_not_sent() -> None:
    with serving(Scripted(lambda body: "x")) as script:
        ask(script, temperature=None, send_seed=False, token_field="max_completion_tokens")
    assert set(script.bodies[0]) == {"model", "messages", "max_completion_tokens"}


@pytest.mark.parametrize("fault", ["429", "500", "503", "408", "garbage", "shape", "truncated"])
def test_a_passing_failure_is_tried_again(fault: str) -> None:
    with serving(Scripted(lambda body: "at last", [fault, fault])) as script:
        answer, pauses = ask(script)
    assert answer is not None and (answer.text, answer.requests) == ("at last", 3)
    assert len(pauses) == 2 and 0 <= pauses[0] <= 1 and 0 <= pauses[1] <= 2  # full jitter below 2^0 and 2^1 seconds


def test_a_request_without_answer_is_given_up_and_tried_again() -> None:
    with serving(Scripted(lambda body: "at last", ["hang"])) as script:
        answer, pauses = ask(script, timeout=0.3)
    # The second is answered at once; where that takes longer than the limit, it is given up and tried again too.
    assert answer is not None and answer.requests == len(script.bodies) == len(pauses) + 1 >= 2


def test_retry_after_is_waited_for_and_a_little_more() -> None:
    with serving(Scripted(lambda body: "x", ["429:7", "429:11.5"])) as script:
        _, pauses = ask(script)
    assert 7 <= pauses[0] <= 8 and 11.5 <= pauses[1] <= 13.5


def test_retry_after_that_is_too_long_is_no_answer() -> None:
    with serving(Scripted(lambda body: "x", ["429:86400"])) as script, pytest.raises(NoAnswer, match="wait 86400 s"):
        ask(script)
    assert len(script.bodies) == 1


@pytest.mark.parametrize("value", [None, "soon", "-3", "nan", "inf", ""])
def test_retry_after_that_says_nothing(value: str | None) -> None:
    assert retry_after(value) == 0.0


def test_attempts_end_and_nothing_is_said_about_the_model() -> None:
    with serving(Scripted(lambda body: "x", ["500:overloaded"] * 3)) as script:
        with pytest.raises(NoAnswer, match=r"^3 attempts, the last: HTTP 500: overloaded$"):
            ask(script, attempts=3)
    assert len(script.bodies) == 3


def test_nobody_listens() -> None:
    with serving(Scripted(lambda body: "x")) as script:
        url = script.url
    with pytest.raises(NoAnswer, match="2 attempts, the last: ConnectError"):
        ask(Scripted(lambda body: "x", url=url), attempts=2)


@pytest.mark.parametrize("reply", [completion(None), completion(""), completion("", finish="content_filter")])
def test_an_empty_answer_is_an_answer(reply: dict[str, Any]) -> None:
    with serving(Scripted(lambda body: reply)) as script:
        answer, _ = ask(script)
    assert answer is not None and answer.text == "" and answer.requests == 1


def test_an_answer_that_was_cut_off_says_so() -> None:
    with serving(Scripted(lambda body: completion("```python", finish="length"))) as script:
        answer, _ = ask(script)
    assert answer is not None and answer.stop == "length"


def test_a_conversation_that_is_too_long_has_no_answer() -> None:
    with serving(Scripted(lambda body: "x", ["400:This model's maximum context length is 8192 tokens"])) as script:
        answer, _ = ask(script, SHOWN)
    assert answer is None


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_no_request_can_mend_is_one_line_without_the_key(status: int) -> None:
    with serving(Scripted(lambda body: "x", [str(status)])) as script:
        with pytest.raises(UsageError) as error:
            ask(script)
    text = str(error.value)
    assert "\n" not in text and "check --url, --model and --key-env" in text
    assert KEY not in text and "Bearer *** will not do" in text  # the server repeats the key
    assert len(script.bodies) == 1


@pytest.mark.parametrize("fault", ["413", "400:The response was filtered (content_filter)"])
def test_another_refusal_ends_the_answer_without_the_key(fault: str) -> None:
    with serving(Scripted(lambda body: "x", [fault])) as script, pytest.raises(NoAnswer) as error:
        ask(script)
    assert KEY not in str(error.value) and f"HTTP {fault[:3]}" in str(error.value)


@pytest.mark.parametrize("status", [400, 422])
def test_fields_that_an_endpoint_refuses_end_the_command_with_the_flags_that_mend_it(status: int) -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model."
    with serving(Scripted(lambda body: "x", [f"{status}:{said}"])) as script, pytest.raises(UsageError) as error:
        ask(script)
    assert str(error.value) == (
        f"{script.url}: every request will be refused like this one (HTTP {status}: {said}): "
        "give --token-field max_completion_tokens, --temperature -1 (sends none), or a smaller --max-new-tokens"
    )
    assert len(script.bodies) == 1  # nothing is tried again


def test_the_key_is_in_nothing_that_is_dumped_or_shown() -> None:
    with serving(Scripted(lambda body: "x")) as script:

        async def shown(endpoint: Endpoint) -> str:
            return repr(endpoint) + repr(endpoint.config) + str(to_json(endpoint.config))

        assert KEY not in run(script, shown, [])


@pytest.mark.parametrize("key", ["two words", "new\nline", "naïve"])
def test_a_key_that_no_header_takes_is_not_repeated(key: str) -> None:
    async def main() -> None:
        async with open_endpoint(EndpointConfig("http://localhost/v1", "m"), key):
            raise AssertionError("it was opened")

    with pytest.raises(UsageError) as error:
        anyio.run(main)
    assert key not in str(error.value) and "--key-env" in str(error.value)


def test_cost_is_counted_and_limited() -> None:
    async def two(endpoint: Endpoint) -> tuple[float, str]:
        answer = await endpoint.write("p", (), 0)
        assert answer is not None and answer.cost == pytest.approx(100 * 2 / 1e6 + 10 * 30 / 1e6)  # 0.0005
        with pytest.raises(NoAnswer) as error:
            await endpoint.write("p", (), 1)
        return endpoint.cost, str(error.value)

    with serving(Scripted(lambda body: "x")) as script:
        cost, said = run(script, two, [], spent=1.0, price_in=2.0, price_out=30.0, max_cost=1.0004)
    assert cost == pytest.approx(1.0005) and "--max-cost is 1.0004" in said
    assert len(script.bodies) == 1


def test_tokens_that_are_not_told_are_not_invented() -> None:
    reply = {"choices": [{"message": {"content": "x"}}]}
    with serving(Scripted(lambda body: reply)) as script:
        answer, _ = ask(script, price_in=1.0)
    assert answer is not None and (answer.prompt_tokens, answer.completion_tokens, answer.cost) == (None, None, 0.0)


async def _many(endpoint: Endpoint, count: int) -> None:
    async with anyio.create_task_group() as tasks:
        for seed in range(count):
            tasks.start_soon(endpoint.write, "p", (), seed)


def test_no_more_requests_are_in_flight_than_allowed() -> None:
    with serving(Scripted(lambda body: "x")) as script:
        run(script, lambda endpoint: _many(endpoint, 12), [], in_flight=3)
    assert len(script.bodies) == 12 and 1 <= script.open_most <= 3


def test_requests_per_minute_are_spread() -> None:
    pauses: list[float] = []
    with serving(Scripted(lambda body: "x")) as script:
        run(script, lambda endpoint: _many(endpoint, 5), pauses, per_minute=6.0)
    # One each 10 s: the first goes at once, the k-th is told to wait 10 k s, less what has passed meanwhile.
    assert len(pauses) == 4
    assert all(10 * k - 5 < pause <= 10 * k for k, pause in enumerate(pauses, 1))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "localhost:8000"}, "--url is not an http"),
        ({"url": "https://me:secret@host/v1"}, "put the key into an environment variable"),
        ({"url": "https://host/v1?key=secret"}, "put the key into an environment variable"),
        ({"model": ""}, "--model"),
        ({"attempts": 0}, "--attempts 0: at least 1"),
        ({"in_flight": 0}, "--in-flight 0: at least 1"),
        ({"price_out": -1.0}, "--price-out -1.0: at least 0"),
        ({"timeout": float("nan")}, "--timeout nan"),
    ],
)
def test_a_configuration_that_cannot_work_is_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        EndpointConfig(**{"url": "http://localhost:8000/v1", "model": "m", **changes})
    assert "secret" not in str(error.value) and "\n" not in str(error.value)
