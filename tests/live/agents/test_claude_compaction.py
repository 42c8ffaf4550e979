"""Claude Code compacts its conversation when a prompt is too long, and finishes its task.

Keeps C80.
"""

import json
from typing import Any

import pytest

from tests.live.agents.test_claude_code import Desk, desk
from tests.upstream import messages_events, openai_chunks
from tests.upstream.server import Script

__all__ = ["desk"]
pytestmark = pytest.mark.client("npm:@anthropic-ai/claude-code", "messages")
FULL, EMPTY = 20_000, 1_000
TOO_LONG = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 210000 tokens > 200000 maximum",
    },
}
RECORD = "<summary>The greeting was written; nothing else is left to do.</summary>"
DONE = "It is written."


def by_claude(words: str, prompt: int, arguments: str = "") -> Script:
    events = messages_events
    block = [events.text(), events.words(words), events.block_stop(0)]
    if arguments:
        begun = events.tool(0, "toolu_1", "Write")
        block = [begun, events.arguments(arguments), events.block_stop(0)]
    reason = "tool_use" if arguments else "end_turn"
    answer = [
        events.start(input_tokens=prompt),
        *block,
        events.message_delta(reason),
        events.STOP,
    ]
    return Script(chunks=[*map(events.sse, answer)])


def by_vllm(words: str, prompt: int, arguments: str = "") -> Script:
    chunks = openai_chunks
    delta: dict[str, Any] = {"role": "assistant", "content": words}
    if arguments:
        call = chunks.call_delta(0, id_="call_1", name="Write", arguments=arguments)
        delta = {"role": "assistant", "tool_calls": [call | {"type": "function"}]}
    frames = [
        chunks.chunk(delta),
        chunks.chunk({}, finish="tool_calls" if arguments else "stop"),
        chunks.chunk(usage=chunks.usage(prompt)),
    ]
    return Script(chunks=[*map(chunks.sse, frames), chunks.DONE])


@pytest.mark.parametrize("row", ["claude", "vllm"])
async def test_c80_claude_code_compacts_and_finishes_its_task(desk: Desk, row: str) -> None:
    write = by_claude if row == "claude" else by_vllm
    path = str(desk.folder / "greeting.txt")
    arguments = json.dumps({"file_path": path, "content": "Hello"})
    refused = Script.json(400, TOO_LONG)
    desk.upstream.enqueue(
        write("", FULL, arguments), refused, write(RECORD, FULL), write(DONE, EMPTY)
    )
    report = await desk.ask(f"acme/{row}")
    assert (report["is_error"], report["result"]) == (False, DONE)
    assert (desk.folder / "greeting.txt").read_text() == "Hello"
    _, _, compacting, last = (received.body.decode() for received in desk.upstream.received)
    assert "summary" in compacting
    assert "nothing else is left to do" in last
    assert "nothing else is left to do" not in compacting
