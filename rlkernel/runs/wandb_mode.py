"""Whether a run is logged at Weights & Biases at once, kept to be sent later, or not logged: what is asked for and can be had."""

from __future__ import annotations

import base64
import functools
import importlib.util
import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from rlkernel.errors import UsageError, first_line

if TYPE_CHECKING:
    import wandb

Mode = Literal["online", "offline", "disabled"]
CONNECT_SECONDS = 10.0
"""The time that the service has for its first answer."""
REFUSED = (401, 403)
VIEWER = b'{"query": "query { viewer { id } }"}'
"""The question whose answer is null for a key that nobody has."""


def mode() -> Mode:
    """The mode that is asked for: WANDB_MODE if that is set, else online with WANDB_API_KEY and offline without. Raises
    UsageError."""
    key = os.environ.get("WANDB_API_KEY")
    asked = os.environ.get("WANDB_MODE") or ("online" if key else "offline")
    if asked not in get_args(Mode):
        raise UsageError(f"WANDB_MODE is {asked!r}: choose online, offline or disabled, or unset it")
    return cast(Mode, asked)


def keep_files_in(directory: Path) -> None:
    """Let W&B prepare what it uploads below `directory`, which can be written, and not in the user's home, which may be read-only
    or not exist. A WANDB_DATA_DIR of the user's own wins."""
    place = Path("wandb", "data")
    if Path(os.environ.get("WANDB_DATA_DIR", place)).parts[-2:] == place.parts:  # not set, or by an earlier run of this process
        os.environ["WANDB_DATA_DIR"] = str(directory.absolute() / place)


def check() -> None:
    """Raise UsageError for a WANDB_MODE that does not exist, where wandb is asked for and not installed, and for a key that the
    service does not accept."""
    if mode() == "disabled":
        return
    if importlib.util.find_spec("wandb") is None:
        raise UsageError("wandb is not installed: install it with `pip install wandb`, or set WANDB_MODE=disabled")
    if mode() == "online":
        unreachable()


def unreachable() -> str | None:
    """Say why the service cannot be reached, after one request per process; None where it answers.

    Raises UsageError where it answers that it does not accept the key.
    """
    import wandb  # takes a second, and may be absent where it is disabled

    return _asked(str(wandb.setup().settings.base_url).rstrip("/"), os.environ.get("WANDB_API_KEY", ""))


def open_run(directory: Path, **about: Any) -> wandb.Run:
    """`wandb.init` in `directory`, silent; offline, with one line about it, where the service cannot be reached.

    about: the further arguments of `wandb.init`. Raises UsageError for a key that is not accepted.
    """
    import wandb

    keep_files_in(directory)
    chosen = mode()
    why = unreachable() if chosen == "online" else None

    def start(chosen: Mode) -> wandb.Run:
        return wandb.init(
            project=os.environ.get("WANDB_PROJECT", "rlkernel"),
            dir=directory,
            mode=chosen,  # explicitly, because wandb reads its variables once per process
            settings=wandb.Settings(silent=True, console="off", disable_git=True, init_timeout=3 * CONNECT_SECONDS),
            **about,
        )

    if why is None:
        try:
            return start(chosen)
        except wandb.errors.AuthenticationError as error:
            raise _refused(first_line(error)) from error
        except wandb.errors.CommError as error:
            why = first_line(error)
            wandb.teardown()  # its own process holds the name of the run that did not begin
    later = f"send it later with `wandb sync {directory}/wandb/offline-run-*`"
    print(f"Weights & Biases cannot be reached ({why}): this run is logged offline; {later}", file=sys.stderr)
    return start("offline")


@functools.cache
def _asked(address: str, key: str) -> str | None:
    """`unreachable` for the service at `address`. key: empty where wandb has its own from `wandb login`."""
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = "Basic " + base64.b64encode(f"api:{key}".encode()).decode()
    request = urllib.request.Request(f"{address}/graphql", data=VIEWER, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=CONNECT_SECONDS) as response:
            body = response.read()
    except urllib.error.HTTPError as error:
        with error:
            if key and error.code in REFUSED:
                raise _refused(f"HTTP {error.code}") from None
        return None
    except OSError as error:
        reason = getattr(error, "reason", error)
        # Certificates are wandb's own affair.
        return None if isinstance(reason, ssl.SSLError) else f"{address}: {reason}"
    if key and _nobody(body):
        raise _refused("nobody has it")
    return None


def _nobody(body: bytes) -> bool:
    """Whether the service's answer to VIEWER is that there is no such user."""
    try:
        return bool(json.loads(body)["data"]["viewer"] is None)
    except (ValueError, KeyError, TypeError):
        return False


def _refused(why: str) -> UsageError:
    return UsageError(f"Weights & Biases does not accept the key ({why}): mend WANDB_API_KEY, or set WANDB_MODE=offline")
