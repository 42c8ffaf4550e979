"""Reads a stream of Responses events as a careful client does."""

import json
from decimal import Decimal
from typing import Any

Json = dict[str, Any]

_ENDS = ("response.completed", "response.incomplete", "response.failed")
# Events that say nothing that the item does not have.
_OF_RUNS = (
    "response.image_generation_call.completed",
    "response.web_search_call.in_progress",
    "response.web_search_call.searching",
    "response.web_search_call.completed",
    "response.mcp_call.in_progress",
    "response.mcp_call.completed",
    "response.mcp_call.failed",
)
# The field of a piece or of an item that grows, by the beginning of the event's type.
_GROWS = {
    "response.output_text.": "text",
    "response.refusal.": "refusal",
    "response.reasoning_text.": "text",
    "response.reasoning_summary_text.": "text",
    "response.function_call_arguments.": "arguments",
    "response.custom_tool_call_input.": "input",
    "response.mcp_call_arguments.": "arguments",
}


def response_events(stream: bytes) -> list[Json]:
    """The data of every event; each is named by its type and numbered, and nothing else is sent."""
    pieces = stream.split(b"\n\n")
    assert pieces.pop() == b""
    read = []
    for number, piece in enumerate(pieces):
        name, data = piece.split(b"\n")
        event = json.loads(data.removeprefix(b"data: "), parse_float=Decimal)
        assert name == b"event: " + event["type"].encode()
        assert event.pop("sequence_number") == number
        read.append(event)
    return read


def accumulated_response(stream: bytes) -> Json:
    """The response that a stream amounts to; its items are built from their events alone."""
    created, begun, *rest = response_events(stream)
    assert (created["type"], begun["type"]) == ("response.created", "response.in_progress")
    assert created["response"] == begun["response"]
    assert created["response"]["output"] == []
    *rest, last = rest
    assert last["type"] in _ENDS
    output: list[Json] = []
    ended: set[int] = set()
    for event in rest:
        _take(event, output, ended)
    assert ended == set(range(len(output)))
    assert last["response"]["output"] == output
    whole: Json = last["response"]
    return whole


def _take(event: Json, output: list[Json], ended: set[int]) -> None:
    kind, place = event["type"], event["output_index"]
    if kind == "response.output_item.added":
        assert place == len(output)
        output.append(event["item"])
        return
    item = output[place]
    assert place not in ended
    if kind == "response.output_item.done":
        ended.add(place)
        done = event["item"]
        sealed = done.get("encrypted_content")
        known = {**item, "status": done["status"]}
        if done["type"] == "image_generation_call":
            # The picture comes with the item's end alone.
            known["result"] = done["result"]
        if done["type"] == "web_search_call" and "sources" in done["action"]:
            known["action"] = {**item["action"], "sources": done["action"]["sources"]}
        if done["type"] == "mcp_call":
            known["output"] = done["output"]
        assert done == (known if sealed is None else {**known, "encrypted_content": sealed})
        output[place] = done
        return
    assert event["item_id"] == item["id"]
    if kind in _OF_RUNS:
        return
    pieces = _pieces(event, item)
    match kind.rpartition(".")[2]:
        case "added" if "annotation" in event:
            piece = pieces[event["content_index"]]
            assert event["annotation_index"] == len(piece["annotations"])
            piece["annotations"].append(event["annotation"])
        case "added":
            assert event.get("content_index", event.get("summary_index")) == len(pieces)
            pieces.append(event["part"])
        case "delta":
            grown = _grown(event, item, pieces)
            grown[_field(kind)] += event["delta"]
            if event.get("logprobs"):
                grown["logprobs"] += event["logprobs"]
        case "done" if "part" in event:
            assert _grown(event, item, pieces) == event["part"]
        case "done":
            grown = _grown(event, item, pieces)
            assert grown[_field(kind)] == event[_field(kind)]
        case unknown:
            raise AssertionError(unknown)


def _pieces(event: Json, item: Json) -> list[Json]:
    if "summary_index" in event:
        found: list[Json] = item["summary"]
    elif "content_index" in event:
        found = item.setdefault("content", [])
    else:
        found = []
    return found


def _grown(event: Json, item: Json, pieces: list[Json]) -> Json:
    return pieces[event.get("content_index", event.get("summary_index"))] if pieces else item


def _field(kind: str) -> str:
    return next(field for start, field in _GROWS.items() if kind.startswith(start))
