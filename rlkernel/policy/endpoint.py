"""An OpenAI-compatible endpoint (`POST <url>/chat/completions`) as a `Writer`.

write -- place (requests in flight) -- moment (requests per minute) -- request -- reading of the response:
    an answer                              Answer, also when its text is empty: the model has spoken
    429, 5xx, 408, 409, timeout,           again, after a pause that doubles, or what Retry-After says; NoAnswer when the
    broken connection, unreadable body     attempts are used up
    context too long                       None
    401, 403, 404                          UsageError: no request can succeed
    400, 422                               UsageError: what every request says is refused; NoAnswer where it is the prompt's text
    another refusal                        NoAnswer

The key lives in the client's headers alone. It is in no value that is dumped, and is cut out of every text of the endpoint.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx

from rlkernel.errors import UsageError, one_line
from rlkernel.policy.writer import Answer, Exchange, NoAnswer

FATAL = {401: "the key is not accepted", 403: "the key may not do this", 404: "there is no such model or path"}
PASSING = frozenset({408, 409, 425, 429})
LONGEST_PAUSE = 60.0
"""The most seconds that we pause of our own accord; Retry-After may ask for more, up to MOST_PATIENCE."""
MOST_PATIENCE = 600.0
MALFORMED = (400, 422)
FILTERED = ("content_filter", "content management policy", "content policy", "safety system", "flagged")
"""What a refusal says that is about the text of one prompt, and not about the fields that all requests have."""
TOO_LONG = ("context_length_exceeded", "maximum context length", "context window", "prompt is too long")

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class EndpointConfig:
    """What an endpoint is asked with, but for the key. Raises UsageError for values that cannot work."""

    url: str
    """The address without `/chat/completions`, e.g. `http://localhost:8000/v1`."""
    model: str
    max_new_tokens: int = 4096
    temperature: float | None = 1.0
    """The temperature of sampling; None sends none, for models that refuse it."""
    token_field: str = "max_tokens"
    """The name under which `max_new_tokens` is sent: `max_completion_tokens` for models that want that."""
    send_seed: bool = True
    timeout: float = 600.0
    """The seconds that one request may take."""
    attempts: int = 8
    in_flight: int = 8
    per_minute: float = 0.0
    """The most requests per minute; 0 is no limit."""
    price_in: float = 0.0
    """The price of a million tokens of prompts."""
    price_out: float = 0.0
    max_cost: float = 0.0
    """No request is begun once this much is spent; 0 is no limit."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("--url is not an http(s) address: give the base, such as http://localhost:8000/v1")
        if parts.username or parts.password or parts.query:
            raise UsageError("--url holds a user, password or query: put the key into an environment variable (--key-env)")
        if not self.model:
            raise UsageError("an endpoint needs --model, the name that it knows the model by")
        for name in ("max_new_tokens", "attempts", "in_flight"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name.replace('_', '-')} {getattr(self, name)}: at least 1")
        for name in ("timeout", "per_minute", "price_in", "price_out", "max_cost"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise UsageError(f"--{name.replace('_', '-')} {getattr(self, name)}: at least 0")


class Endpoint:
    """The writer that `open_endpoint` opens. `cost` is what was spent so far, `requests` the number of requests sent."""

    def __init__(
        self, config: EndpointConfig, client: httpx.AsyncClient, key: str, sleep: Sleep, jitter: random.Random, spent: float
    ) -> None:
        self.config = config
        self.cost = spent
        self.requests = 0
        self._client = client
        self._key = key
        self._sleep = sleep
        self._jitter = jitter
        self._places = anyio.Semaphore(config.in_flight)
        self._pacing = anyio.Lock()
        self._next_start = 0.0

    async def write(self, prompt: str, shown: Sequence[Exchange], seed: int) -> Answer | None:
        """Ask for the next answer; see `rlkernel.policy.writer.Writer`. Raises UsageError where no request can succeed."""
        body = self._body(prompt, shown, seed)
        async with self._places:
            for attempt in range(self.config.attempts):
                if 0 < self.config.max_cost <= self.cost:
                    raise NoAnswer(f"{self.cost:.2f} is spent, and --max-cost is {self.config.max_cost:g}")
                await self._wait_for_start()
                self.requests += 1
                try:
                    with anyio.fail_after(self.config.timeout):
                        response = await self._client.post("chat/completions", json=body)
                    return self._read(response, attempt + 1)
                except _TooLong:
                    return None
                except _Again as again:
                    why, pause = str(again), again.seconds
                except TimeoutError:
                    why, pause = f"no answer within {self.config.timeout:g} s", 0.0
                except httpx.HTTPError as error:
                    why, pause = self._clean(one_line(error)), 0.0
                if attempt + 1 < self.config.attempts:
                    await self._sleep(self._pause(attempt, pause))
        raise NoAnswer(f"{self.config.attempts} attempts, the last: {why}")

    def _pause(self, attempt: int, asked: float) -> float:
        """The seconds before the next attempt: a random part of a pause that doubles, so that requests that failed together do
        not come back together, and never less than was asked for."""
        return asked + self._jitter.uniform(0.0, min(LONGEST_PAUSE, 2.0**attempt))

    async def _wait_for_start(self) -> None:
        """Wait until the limit of requests per minute lets the next request start."""
        if not self.config.per_minute:
            return
        async with self._pacing:
            now = time.monotonic()
            wait, self._next_start = self._next_start - now, max(now, self._next_start) + 60.0 / self.config.per_minute
        if wait > 0:
            await self._sleep(wait)

    def _body(self, prompt: str, shown: Sequence[Exchange], seed: int) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}]
        for exchange in shown:
            messages.append({"role": "assistant", "content": exchange.answer.text})
            messages.append({"role": "user", "content": exchange.feedback})
        body: dict[str, Any] = {"model": self.config.model, "messages": messages}
        body[self.config.token_field] = self.config.max_new_tokens
        if self.config.temperature is not None:
            body["temperature"] = self.config.temperature
        if self.config.send_seed:
            body["seed"] = seed % (1 << 31)
        return body

    def _read(self, response: httpx.Response, requests: int) -> Answer:
        """The answer in a response. Raises _Again, _TooLong, NoAnswer or UsageError."""
        status = response.status_code
        if status == 200:
            try:
                return self._answer(response.json(), requests)
            except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
                raise _Again(f"a body that is no chat completion ({self._clean(one_line(error))})") from None
        said = self._clean(response.text)
        why = f"HTTP {status}: {said}"
        if status in FATAL:
            raise UsageError(f"{self.config.url}: {FATAL[status]} ({why}): check --url, --model and --key-env")
        if status in PASSING or status >= 500:
            seconds = retry_after(response.headers.get("retry-after"))
            if seconds > MOST_PATIENCE:
                raise NoAnswer(f"{why}; it asks to wait {seconds:.0f} s")
            raise _Again(why, seconds)
        if status in (400, 413, 422) and any(mark in response.text for mark in TOO_LONG):
            raise _TooLong
        if status in MALFORMED and not any(mark in response.text for mark in FILTERED):
            other = "max_tokens" if self.config.token_field == "max_completion_tokens" else "max_completion_tokens"
            mends = f"give --token-field {other}, --temperature -1 (sends none), or a smaller --max-new-tokens"
            raise UsageError(f"{self.config.url}: every request will be refused like this one ({why}): {mends}")
        raise NoAnswer(why)

    def _answer(self, data: Any, requests: int) -> Answer:
        choice = data["choices"][0]
        content = choice["message"]["content"]
        if content is not None and not isinstance(content, str):
            raise TypeError("the content is no text")
        usage = data.get("usage") or {}
        taken, made = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
        cost = ((taken or 0) * self.config.price_in + (made or 0) * self.config.price_out) / 1e6
        self.cost += cost
        stop = "length" if choice.get("finish_reason") == "length" else "stop"
        return Answer(content or "", stop, (), taken, made, cost, requests)  # type: ignore[arg-type]

    def _clean(self, text: str) -> str:
        """The message of the endpoint, on one line, without the key."""
        with suppress(ValueError, KeyError, TypeError):  # without the usual form, its beginning says enough
            text = str(json.loads(text)["error"]["message"])
        if self._key:
            text = text.replace(self._key, "***")
        return " ".join(text.split())[:200]


class _Again(Exception):
    """Raised for a failure that may pass: the request is sent again after `seconds` at least."""

    def __init__(self, why: str, seconds: float = 0.0) -> None:
        super().__init__(why)
        self.seconds = seconds


class _TooLong(Exception):
    """Raised when the conversation does not fit into the model's context."""


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def retry_after(value: str | None, now: datetime | None = None) -> float:
    """The seconds that a Retry-After header asks for, as a number or a date; 0 for none, or for one that cannot be read.

    >>> retry_after("7"), retry_after("soon")
    (7.0, 0.0)
    >>> retry_after("Wed, 21 Oct 2026 07:28:10 GMT", datetime(2026, 10, 21, 7, 28, tzinfo=UTC))
    10.0
    """
    if value is None:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value, now or datetime.now(UTC))
    return seconds if 0 <= seconds < float("inf") else 0.0


def _seconds_until(date: str, now: datetime) -> float:
    """The seconds until an HTTP date; 0 for a text that is none."""
    try:
        return (parsedate_to_datetime(date) - now).total_seconds()
    except (ValueError, TypeError):
        return 0.0


@asynccontextmanager
async def open_endpoint(
    config: EndpointConfig, key: str, *, spent: float = 0.0, sleep: Sleep = anyio.sleep, jitter: random.Random | None = None
) -> AsyncIterator[Endpoint]:
    """Open a client for the endpoint. key: empty for endpoints that want none. spent: what was spent before, which counts against
    `max_cost`. Raises UsageError for a key that cannot be sent."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError("the key has characters that no HTTP header takes: look at its environment variable (--key-env)")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    limits = httpx.Limits(max_connections=config.in_flight, max_keepalive_connections=config.in_flight)
    base = config.url.rstrip("/") + "/"
    async with httpx.AsyncClient(base_url=base, headers=headers, timeout=None, limits=limits) as client:
        yield Endpoint(config, client, key, sleep, jitter or random.Random(), spent)
