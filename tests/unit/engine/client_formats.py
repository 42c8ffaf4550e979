"""The client formats as a client of each uses them: what it sends, reads, and sends back."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tests import chat_stream, completion_stream, message_stream, response_stream
from tests.asgi import Exchange, request
from tests.gateways import Always, House
from tests.unit.engine.same_conversations import (
    CHAT_TOOLS,
    HI,
    RESPONSES_TOOLS,
    TOOLS,
    Json,
)
from tests.upstream.speakers import Call
from tollgate.ingress.format_rows import IngressFormat
from tollgate.ingress.formats import CHAT_COMPLETIONS, COMPLETIONS, MESSAGES, RESPONSES
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits


async def exchange(home: House, path: str, body: Json, **headers: str) -> Exchange:
    """The reply to one request, with no headers but the key and those given."""
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    content = json.dumps({"model": "acme/large", **body}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await request(
        app, "POST", path, headers={"x-api-key": home.secret, **named}, body=content
    )


@dataclass(frozen=True, kw_only=True)
class ClientFormat:
    """A client format.

    `question` has tools where the format has them, and `limit` is the field that caps its answer.
    `next_turn` is the request of a client that sends back an answer and the results of its calls.
    `made_anew` are the fields that no two replies have alike.
    """

    row: IngressFormat
    question: Json
    words: Callable[[Json], str]
    next_turn: Callable[[Json, Mapping[str, str]], Json] | None
    accumulate: Callable[[bytes], Json]
    failure: Callable[[bytes], Json]
    limit: str = "max_tokens"
    made_anew: frozenset[str] = field(default_factory=lambda: frozenset({"id"}))

    @property
    def name(self) -> str:
        return self.row.name

    async def ask(self, home: House, body: Json, *, stream: bool, **headers: str) -> Exchange:
        """The reply to a request with room for 4,000 tokens."""
        asked = body | {self.limit: 4_000, "stream": stream}
        return await exchange(home, self.row.path, asked, **headers)

    def whole(self, reply: Exchange) -> Json:
        """The reply, put together where it was streamed."""
        streamed = reply.headers["content-type"].startswith("text/event-stream")
        return self.accumulate(reply.body) if streamed else chat_stream.exact(reply.body)

    def comparable(self, reply: Json) -> Json:
        """A reply without what is made anew for each; items of an output have ids of their own."""
        kept = {name: value for name, value in reply.items() if name not in self.made_anew}
        if "output" in kept:
            kept["output"] = [{**item, "id": None} for item in kept["output"]]
        return kept


def _turn_of_chat(reply: Json, results: Mapping[str, str]) -> Json:
    told = [
        {"role": "tool", "tool_call_id": id_, "content": result} for id_, result in results.items()
    ]
    message = reply["choices"][0]["message"]
    return CHAT.question | {"messages": [*HI["messages"], message, *told]}


def _turn_of_messages(reply: Json, results: Mapping[str, str]) -> Json:
    told = [
        {"type": "tool_result", "tool_use_id": id_, "content": result}
        for id_, result in results.items()
    ]
    answer = {"role": "assistant", "content": reply["content"]}
    history = [*HI["messages"], answer, *([{"role": "user", "content": told}] if told else [])]
    return MESSAGE.question | {"messages": history}


def _turn_of_responses(reply: Json, results: Mapping[str, str]) -> Json:
    told = [
        {"type": "function_call_output", "call_id": id_, "output": result}
        for id_, result in results.items()
    ]
    return RESPONSE.question | {"input": [*HI["messages"], *reply["output"], *told]}


def _said(items: Iterable[Json]) -> str:
    parts = (part for item in items if item["type"] == "message" for part in item["content"])
    return "".join(part.get("text") or part.get("refusal", "") for part in parts)


def _last_chunk(stream: bytes) -> Json:
    error: Json = chat_stream.frames(stream)[-1]["error"]
    return error


def _last_event(stream: bytes) -> Json:
    last = message_stream.events(stream)[-1]
    assert last["type"] == "error"
    error: Json = last["error"]
    return error


def _failed_response(stream: bytes) -> Json:
    told, failed = response_stream.response_events(stream)[-2:]
    assert (told["type"], failed["type"]) == ("error", "response.failed")
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"]["tollgate_code"] == told["code"]
    error: Json = told["error"]
    return error


CHAT = ClientFormat(
    row=CHAT_COMPLETIONS,
    question={"messages": HI["messages"], "tools": CHAT_TOOLS},
    words=lambda reply: reply["choices"][0]["message"]["content"] or "",
    next_turn=_turn_of_chat,
    accumulate=chat_stream.accumulated,
    failure=_last_chunk,
    made_anew=frozenset({"id", "created", "episode_id"}),
)
LEGACY = ClientFormat(
    row=COMPLETIONS,
    question={"prompt": "Hi"},
    words=lambda reply: reply["choices"][0]["text"],
    next_turn=None,
    accumulate=completion_stream.accumulated,
    failure=_last_chunk,
    made_anew=frozenset({"id", "created", "episode_id"}),
)
MESSAGE = ClientFormat(
    row=MESSAGES,
    question={"messages": HI["messages"], "tools": TOOLS},
    words=lambda reply: "".join(block.get("text", "") for block in reply["content"]),
    next_turn=_turn_of_messages,
    accumulate=message_stream.accumulated,
    failure=_last_event,
)
RESPONSE = ClientFormat(
    row=RESPONSES,
    question={"input": HI["messages"], "tools": RESPONSES_TOOLS},
    words=lambda reply: _said(reply["output"]),
    next_turn=_turn_of_responses,
    accumulate=response_stream.accumulated_response,
    failure=_failed_response,
    limit="max_output_tokens",
    made_anew=frozenset({"id", "created_at", "completed_at"}),
)
CLIENT_FORMATS = {each.name: each for each in (CHAT, LEGACY, MESSAGE, RESPONSE)}
# The formats of conversations, which a bare prompt is not.
CONVERSING = (CHAT, MESSAGE, RESPONSE)


def results_of(calls: Iterable[Call]) -> dict[str, str]:
    return {call.id: f"result of {call.id}" for call in calls}
