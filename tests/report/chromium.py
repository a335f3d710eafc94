"""A headless Chromium for tests of pages: opens files, presses keys, evaluates expressions, takes screenshots.

Speaks the DevTools protocol over a pipe: JSON messages that end in a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOUND = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio"),
    *("--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe"),
)
PATIENCE_SECONDS = 120
"""For what a page does at once where nothing else runs."""


class Page:
    """One tab."""

    def __init__(self, reads: int, writes: int) -> None:
        self._in, self._out = os.fdopen(reads, "rb"), os.fdopen(writes, "wb")
        self._rest, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        """What was logged to the console, and requests other than the page itself."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """The result. Raises RuntimeError with the browser's message."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            found = self._read()
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return found["result"]
            self.events.append(found)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = self._in.read1(1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def open(self, path: Path, fragment: str = "") -> None:
        """Load anew and wait until the page says that it is ready."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=f"{path.resolve().as_uri()}{fragment}")
        self.wait_until("document.documentElement.dataset.ready !== undefined")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait_until(self, expression: str) -> None:
        """Wait until an expression is true; one that throws, as what it reads is not there yet, is not. Raises RuntimeError."""
        true = f"(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"
        look = f"if ({true}) resolve(true); else if (performance.now() > end) resolve(false); else setTimeout(look, 4)"
        promise = f"const end = performance.now() + {1000 * PATIENCE_SECONDS}; const look = () => {{ {look}; }}; look();"
        if not self.evaluate(f"new Promise((resolve) => {{ {promise} }})"):
            raise RuntimeError(f"not true after {PATIENCE_SECONDS} seconds: {expression}")

    def texts(self, selector: str) -> list[str]:
        """The text of every element that a selector finds."""
        found: list[str] = self.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((node) => node.textContent)"
        )
        return found

    def shows(self, at: str) -> None:
        """Wait until the viewer shows a turn."""
        self.wait_until(f"document.getElementById('turn').dataset.at === {json.dumps(at)}")

    def wait_for(self, found: Callable[[], bool]) -> None:
        """Wait until something outside of the page is so, such as a file that it saves. Raises RuntimeError."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not found():
            if time.monotonic() > end:
                raise RuntimeError(f"not so after {PATIENCE_SECONDS} seconds")
            self.evaluate("new Promise((resolve) => setTimeout(resolve, 20))")

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" else {}))

    def size(self, width: int, height: int, dark: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        self._in.close()
        self._out.close()


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """profile: an empty directory for the browser's own files."""
    assert FOUND is not None
    (here, writes), (reads, there) = os.pipe(), os.pipe()
    # The browser reads descriptor 3 and writes descriptor 4.
    command = f'exec "$@" 3<&{reads} 4>&{writes}'
    arguments = ["bash", "-c", command, "bash", FOUND, *FLAGS, f"--user-data-dir={profile}"]
    with (profile / "stderr").open("w") as noise:
        process = subprocess.Popen(arguments, pass_fds=(reads, writes), stdout=noise, stderr=noise, start_new_session=True)
    os.close(reads)
    os.close(writes)
    page = None
    try:
        page = Page(here, there)
        yield page
    finally:
        if page is not None:
            page.close()  # which ends the browser
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
