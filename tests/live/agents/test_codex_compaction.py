"""Codex compacts its conversation three times and finishes its task, by a model or a provider.

Codex sends a trigger if its provider is named OpenAI.
Keeps C75.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.live.agents.scripts import DONE, Row
from tests.live.agents.test_codex import codex, config, serving, work
from tests.upstream import converse_events, messages_events, openai_chunks, responses_events
from tests.upstream.server import Script

pytestmark = pytest.mark.client("npm:@openai/codex", "responses")
# Less than Codex's own instructions can have, because usage above what was sent is not believed.
LIMIT = 8_000
FULL, EMPTY = LIMIT + 1_000, 1_000
"""Prompt tokens of an answer after which Codex compacts, and of one after which it does not."""
RECORD = "Goal: two files. Done so far: turn {}."


@dataclass(frozen=True)
class Turn:
    """An answer: a command to run, or words."""

    command: str = ""
    words: str = ""
    prompt: int = EMPTY


TURNS = (
    Turn(command="printf one > one.txt", prompt=FULL),
    Turn(words=RECORD.format(1)),
    Turn(command="printf two > two.txt", prompt=FULL),
    Turn(words=RECORD.format(2)),
    Turn(command="cat one.txt two.txt > three.txt", prompt=FULL),
    Turn(words=RECORD.format(3)),
    Turn(words=DONE),
)


def in_chat(turn: Turn, place: int) -> list[bytes]:
    delta: dict[str, Any] = {"role": "assistant", "content": turn.words}
    if turn.command:
        arguments = json.dumps({"cmd": turn.command})
        call = openai_chunks.call_delta(
            0, id_=f"call_{place}", name="exec_command", arguments=arguments, type_="function"
        )
        delta = {"role": "assistant", "tool_calls": [call]}
    finish = "tool_calls" if turn.command else "stop"
    frames = [openai_chunks.chunk(delta), openai_chunks.chunk({}, finish=finish)]
    usage = openai_chunks.chunk(usage=openai_chunks.usage(turn.prompt))
    return [*map(openai_chunks.sse, (*frames, usage)), openai_chunks.DONE]


def in_messages(turn: Turn, place: int) -> list[bytes]:
    events = messages_events
    blocks = [events.text(), events.words(turn.words), events.block_stop(0)]
    if turn.command:
        arguments = events.arguments(json.dumps({"cmd": turn.command}))
        blocks = [events.tool(0, f"toolu_{place}", "exec_command"), arguments, events.block_stop(0)]
    reason = "tool_use" if turn.command else "end_turn"
    answer = [
        events.start(input_tokens=turn.prompt),
        *blocks,
        events.message_delta(reason),
        events.STOP,
    ]
    return [*map(events.sse, answer)]


def in_converse(turn: Turn, place: int) -> list[bytes]:
    events = converse_events
    block = [events.text_delta(turn.words)]
    if turn.command:
        arguments = json.dumps({"cmd": turn.command})
        block = [
            events.tool_start(0, f"tooluse_{place}", "exec_command"),
            events.tool_delta(0, arguments),
        ]
    reason = "tool_use" if turn.command else "end_turn"
    return [
        events.message_start(),
        *block,
        events.block_stop(),
        events.message_stop(reason),
        events.metadata(turn.prompt),
    ]


def by_openai(turn: Turn, place: int) -> Script:
    events, usage = responses_events, responses_events.usage(turn.prompt)
    if turn.words and turn.words != DONE:
        item = {"type": "compaction", "id": f"cmp_{place}", "encrypted_content": turn.words}
        content = {"id": "resp_c", "object": "response.compaction", "created_at": 1}
        body = json.dumps({**content, "output": [item], "usage": usage}).encode()
        return Script(headers={"content-type": "application/json"}, chunks=[body])
    item = events.message(turn.words)
    if turn.command:
        arguments = json.dumps({"cmd": turn.command})
        item = events.call(arguments, f"call_{place}", "exec_command")
    frames = [events.created(), events.done(item), events.completed(item, usage=usage)]
    return Script(headers={"content-type": "text/event-stream"}, chunks=frames)


def row(name: str, provider: str, write: Callable[[Turn, int], list[bytes]], **fields: Any) -> Row:
    stream = "application/vnd.amazon.eventstream" if write is in_converse else "text/event-stream"

    def turns() -> Sequence[Script]:
        headers = {"content-type": stream}
        return [
            Script(headers=headers, chunks=write(turn, place)) for place, turn in enumerate(TURNS)
        ]

    return Row(
        name=name, provider=provider, dialect="", turns=turns, sealed=lambda body: True, **fields
    )


ROWS = (
    row("openai_chat", "codec: openai_chat", in_chat),
    row("anthropic", "codec: anthropic", in_messages),
    row(
        "bedrock",
        "codec: bedrock\n    region: us-east-1",
        in_converse,
        transport="bedrock_runtime",
        environment={"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"},
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_c75_codex_compacts_three_times_and_finishes(row: Row, tmp_path: Path) -> None:
    program = codex()
    folder = tmp_path / "work"
    folder.mkdir()
    async with serving(row, tmp_path) as (upstream, server):
        upstream.enqueue(*row.turns())
        config(tmp_path / "home", server.base_url, server.key, name="OpenAI", limit=LIMIT)
        status, printed = await work(program, folder, tmp_path / "home")
    assert status == 0, printed
    assert DONE in printed
    assert (folder / "three.txt").read_text() == "onetwo"
    bodies = [received.body.decode() for received in upstream.received]
    assert len(bodies) == len(TURNS)
    tasks = [place for place, body in enumerate(bodies) if "Write the record" in body]
    assert tasks == [1, 3, 5]
    assert RECORD.format(1) in bodies[2]
    assert RECORD.format(1) not in bodies[4]
    assert RECORD.format(2) in bodies[4]
    assert RECORD.format(3) in bodies[6]
    assert all("Write one.txt and two.txt." in body for body in bodies)


async def test_c75_codex_goes_on_from_what_its_provider_compacted(tmp_path: Path) -> None:
    program = codex()
    folder = tmp_path / "work"
    folder.mkdir()
    own = Row(
        name="openai_responses",
        provider="codec: openai_responses",
        dialect="compacts: true, developer_role: true",
        turns=lambda: [by_openai(turn, place) for place, turn in enumerate(TURNS)],
        sealed=lambda body: True,
    )
    async with serving(own, tmp_path) as (upstream, server):
        upstream.enqueue(*own.turns())
        config(tmp_path / "home", server.base_url, server.key, name="OpenAI", limit=LIMIT)
        status, printed = await work(program, folder, tmp_path / "home")
    assert status == 0, printed
    assert DONE in printed
    assert (folder / "three.txt").read_text() == "onetwo"
    paths = [received.path.removeprefix("/v1") for received in upstream.received]
    assert paths == ["/responses", "/responses/compact"] * 3 + ["/responses"]
    read = [
        [
            each["encrypted_content"]
            for each in received.json["input"]
            if each.get("encrypted_content")
        ]
        for received in upstream.received
    ]
    first, second, third = ([RECORD.format(number)] for number in (1, 2, 3))
    assert read == [[], [], first, first, second, second, third]
