"""What providers say to an agent that has to write two files, in the words of four formats.

The first turn thinks, runs a command and is signed where the format has signatures, the second
patches, the third says that it is done.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.upstream import gemini_chunks, messages_events, openai_chunks, responses_events
from tests.upstream.server import Script

COMMAND = json.dumps({"cmd": "printf one > one.txt"})
PATCH = "*** Begin Patch\n*** Add File: two.txt\n+two\n*** End Patch"
DONE = "Both files are written."
SEAL = "c2lnbmF0dXJl"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A kind of row: its provider's section, and what that provider says."""

    name: str
    provider: str
    dialect: str
    turns: Callable[[], Sequence[Script]]
    sealed: Callable[[Mapping[str, Any]], bool]
    """Whether a request gives back what the first turn has signed."""
    transport: str = "http_sse"
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the gateway that calls the row."""


def _patch_arguments() -> str:
    return json.dumps({"input": PATCH})


def _chat_turns() -> list[Script]:
    def called(id_: str, name: str, arguments: str) -> Script:
        call = openai_chunks.call_delta(
            0, id_=id_, name=name, arguments=arguments, type_="function"
        )
        return _chat({"role": "assistant", "tool_calls": [call]}, "tool_calls")

    return [
        called("call_1", "exec_command", COMMAND),
        called("call_2", "apply_patch", _patch_arguments()),
        _chat({"role": "assistant", "content": DONE}, "stop"),
    ]


def _chat(delta: dict[str, Any], finish: str) -> Script:
    chunk, sse = openai_chunks.chunk, openai_chunks.sse
    usage = chunk(usage=openai_chunks.usage())
    frames = [sse(chunk(delta)), sse(chunk({}, finish=finish)), sse(usage), openai_chunks.DONE]
    return Script(chunks=frames)


def broken_off(code: str) -> list[Script]:
    """An answer of `VLLM` that fails after its first words."""
    begun = openai_chunks.sse(openai_chunks.chunk({"role": "assistant", "content": "Well, "}))
    told = {"message": "It failed.", "type": code, "code": code}
    return [Script(chunks=[begun, openai_chunks.sse({"error": told})])]


def _responses_turns() -> list[Script]:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEAL}
    called = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "exec_command",
        "arguments": COMMAND,
    }
    patched = {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "call_id": "call_2",
        "name": "apply_patch",
        "input": PATCH,
    }
    said = {"type": "output_text", "text": DONE, "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [said]}
    return [
        Script(chunks=[responses_events.created(), responses_events.completed(*items)])
        for items in ((thought, called), (patched,), (message,))
    ]


def _claude_turns() -> list[Script]:
    events = messages_events
    thought = [
        events.block(0, type="thinking", thinking="", signature=""),
        events.delta(0, "thinking_delta", thinking="Files."),
        events.delta(0, "signature_delta", signature=SEAL),
        events.block_stop(0),
    ]

    def called(place: int, id_: str, name: str, arguments: str) -> list[dict[str, Any]]:
        begun = events.tool(place, id_, name)
        return [begun, events.arguments(arguments, place), events.block_stop(place)]

    answers = [
        events.answer(*thought, *called(1, "toolu_1", "exec_command", COMMAND), reason="tool_use"),
        events.answer(*called(0, "toolu_2", "apply_patch", _patch_arguments()), reason="tool_use"),
        events.text_answer(DONE),
    ]
    return [Script(chunks=[events.sse(event) for event in answer]) for answer in answers]


def _gemini_turns() -> list[Script]:
    chunks = gemini_chunks

    def called(name: str, arguments: str) -> list[dict[str, Any]]:
        part = chunks.call(name, signature=SEAL, args=json.loads(arguments))
        return [chunks.chunk(part), chunks.chunk(finish="STOP") | chunks.usage()]

    answers = [
        called("exec_command", COMMAND),
        called("apply_patch", _patch_arguments()),
        chunks.text_stream(DONE),
    ]
    return [Script(chunks=[chunks.sse(chunk) for chunk in answer]) for answer in answers]


def _has_seal(field: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda body: f'"{field}": "{SEAL}"' in json.dumps(body)


VLLM = Row(
    name="vllm",
    provider="codec: openai_chat",
    dialect="",
    turns=_chat_turns,
    sealed=lambda body: True,
)
ROWS = (
    Row(
        name="openai",
        provider="codec: openai_responses",
        dialect="developer_role: true, text_tools: true, reasoning: effort",
        turns=_responses_turns,
        sealed=_has_seal("encrypted_content"),
    ),
    Row(
        name="claude",
        provider="codec: anthropic",
        dialect="reasoning: claude_adaptive, efforts: [low, medium, high]",
        turns=_claude_turns,
        sealed=_has_seal("signature"),
    ),
    Row(
        name="gemini",
        provider="codec: gemini",
        dialect="reasoning: gemini_level, gemini: { signed_calls: true }",
        turns=_gemini_turns,
        sealed=_has_seal("thoughtSignature"),
    ),
    VLLM,
)
ROUTING = """\
version: 1
providers:
  upstream:
    {provider}
    transport: {transport}
    base_url: {url}
    dialect: {{ {dialect} }}
models:
  acme/agent:
    name: An agent's model
    context: 200000
    max_output: 32000
    input: [text, image]
    supports: [tools, reasoning]
    endpoints:
      - provider: upstream
        upstream: agent-1
        price: {{ input: 1.00, output: 2.00, source: made up, checked: 2026-11-21 }}
"""
