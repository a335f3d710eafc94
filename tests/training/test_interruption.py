"""The end of work by a signal: everything is cleaned up, and a person is told when that takes a while."""

from __future__ import annotations

import os
import signal
from functools import partial

import anyio
import pytest

from rlkernel.training import interruption
from rlkernel.training.interruption import interruptible


async def _slow_to_stop(seconds: float) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(seconds)


@pytest.mark.parametrize(("seconds", "told"), [(0.0, ""), (1.0, interruption.STOPPING + "\n")])
def test_a_stop_that_takes_a_while_says_so_in_one_line(
    seconds: float, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(interruption, "PATIENT_SECONDS", 0.3)
    assert anyio.run(interruptible, partial(_slow_to_stop, seconds))
    assert capsys.readouterr().err == told
