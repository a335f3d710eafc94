"""A harness for `verifiers` that asks the model itself, so that a test starts no program. Not a test."""

from __future__ import annotations

from typing import Any

import httpx
import verifiers.v1 as vf
from verifiers.v1.dialects.chat import message_to_wire

__all__ = ["TalkingHarness"]


class TalkingHarness(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]
    """One request per turn, in this process."""

    SUPPORTS_RESUME = True
    EXECUTES_CODE = NEEDS_CONTAINER = False

    async def launch(self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, mcp_urls: Any, data: Any) -> Any:
        _, prompt = self.resolve_prompt(data)
        said = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [message_to_wire(m) for m in prompt]
        async with httpx.AsyncClient(timeout=60) as client:
            answer = await client.post(
                f"{endpoint}/chat/completions",
                headers={"Authorization": f"Bearer {secret}"},
                json={"model": ctx.model, "messages": said},
            )
            answer.raise_for_status()
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")
