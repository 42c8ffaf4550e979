"""Reads a stream of chat completion chunks as a careful client does."""

import json
from decimal import Decimal
from typing import Any

Json = dict[str, Any]

MARK = b"data: [DONE]\n\n"


def frames(stream: bytes) -> list[Json]:
    """The JSON of every frame; the stream must end with its mark and hold nothing else."""
    assert stream.endswith(MARK)
    events = stream.removesuffix(MARK).split(b"\n\n")
    assert events.pop() == b""
    assert all(event.startswith(b"data: ") and b"\n" not in event for event in events)
    return [exact(event.removeprefix(b"data: ")) for event in events]


def exact(body: bytes) -> Json:
    """JSON with its numbers as they are written."""
    value = json.loads(body, parse_float=Decimal)
    assert isinstance(value, dict)
    return value


def accumulated(stream: bytes) -> Json:
    """The whole reply that a stream amounts to."""
    chunks = frames(stream)
    # An unknown fingerprint is null in a whole reply, and absent from a stream.
    whole: Json = {"system_fingerprint": None}
    choices: dict[int, Json] = {}
    for chunk in chunks:
        for chunk_choice in chunk.pop("choices"):
            fresh: Json = {"index": 0, "message": {"refusal": None}, "logprobs": None}
            choice = choices.setdefault(chunk_choice["index"], fresh)
            _grow(choice["message"], chunk_choice.pop("delta"))
            _note(choice, chunk_choice.pop("logprobs", None))
            choice.update(chunk_choice)
        whole.update(chunk)
    for choice in choices.values():
        _tidy(choice["message"])
    whole.update(
        object="chat.completion", choices=[choice for _, choice in sorted(choices.items())]
    )
    return whole


def _tidy(message: Json) -> None:
    if not message["content"] and (message.get("tool_calls") or message["refusal"]):
        # The role frame says "" before anybody can know that there will be no content.
        message["content"] = None
    for entry in (*message.get("tool_calls", ()), *message.get("annotations", ())):
        del entry["index"]


def _note(choice: Json, more: Json | None) -> None:
    if more is not None:
        known = choice["logprobs"] or {"content": None, "refusal": None}
        for key, tokens in more.items():
            if tokens is not None:
                known[key] = (known[key] or []) + tokens
        choice["logprobs"] = known


def _grow(grown: Json, delta: Json) -> None:
    for key, more in delta.items():
        if key in ("index", "type"):
            grown[key] = more
        elif isinstance(more, list):
            members = grown.setdefault(key, [])
            for member in more:
                if member["index"] == len(members):
                    members.append(member)
                else:
                    _grow(members[member["index"]], member)
        elif isinstance(more, dict):
            _grow(grown.setdefault(key, {}), more)
        elif isinstance(more, str):
            grown[key] = (grown.get(key) or "") + more
        else:
            grown[key] = more
