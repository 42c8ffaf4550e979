"""Requests that are cheap to send and costly to serve, for tests and for `make bench`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests import documents
from tests.unit.ingress.media_samples import data_url
from tollgate.core.files.media_types import PDF
from tollgate.ingress.responses.stored import encode_stored

CHAT = "/v1/chat/completions"
JSON = "application/json"
STORED_ID = "5g0DOBgUqHItjZD"


@dataclass(frozen=True)
class Shape:
    """One kind of request; `make` takes the part of the size with which it was found."""

    name: str
    path: str
    make: Callable[[float], bytes]
    content_type: str = JSON


def _asking(content: Any, **fields: Any) -> bytes:
    messages = [{"role": "user", "content": content}]
    return json.dumps({"model": "acme/large", "messages": messages, **fields}).encode()


def _many(value: bytes, count: float) -> bytes:
    return b"[" + b",".join([value] * int(count)) + b"]"


def _in_tool(values: bytes) -> bytes:
    function = {"name": "f", "parameters": {"type": "object", "x": "VALUES"}}
    body = _asking("Hi", tools=[{"type": "function", "function": function}])
    return body.replace(b'"VALUES"', values)


def _in_schema(part: float) -> bytes:
    schema = {"name": "s", "schema": {"type": "object", "x": "VALUES"}}
    body = _asking("Hi", response_format={"type": "json_schema", "json_schema": schema})
    return body.replace(b'"VALUES"', _many(b"[" * 150 + b"]" * 150, 25_000 * part))


def _with_documents(part: float) -> bytes:
    report = data_url(documents.pdf(["Profits rose."]), PDF)
    return _asking([{"type": "file", "file": {"file_data": report}}] * 16)


def _naming_files(part: float) -> bytes:
    return _asking([{"type": "file", "file": {"file_id": f"file_{STORED_ID}"}}] * 16)


def _in_messages(part: float) -> bytes:
    messages = [{"role": "user", "content": "x"}] * int(100_000 * part)
    return json.dumps({"model": "acme/large", "max_tokens": 9, "messages": messages}).encode()


def _in_form(part: float) -> bytes:
    head = b'--b\r\ncontent-disposition: form-data; name="'
    sound = head + b'file"; filename="a.wav"\r\n\r\n' + b"\0" * int(24_000_000 * part) + b"\r\n"
    return sound + head + b'model"\r\n\r\nacme/large\r\n--b--\r\n'


def _naming_stored(part: float) -> bytes:
    fields = {"input": "More", "previous_response_id": f"resp_{STORED_ID}"}
    return json.dumps({"model": "acme/large", **fields}).encode()


def stored_conversation() -> Mapping[str, bytes]:
    """A stored response of 60,000 messages and 7.9 MB, by its generation's id."""
    said = {"type": "message", "role": "user", "content": "x" * 75}
    return {STORED_ID: encode_stored(b'{"output":[]}', [said] * 60_000)}


SHAPES = (
    Shape("30 MB of empty lists in a tool", CHAT, lambda part: _in_tool(_many(b"[]", 1e7 * part))),
    Shape("7.5 MB of nested lists in response_format", CHAT, _in_schema),
    Shape("60 KB of empty lists in a tool", CHAT, lambda _: _in_tool(_many(b"[]", 20_000))),
    Shape("a stored conversation of 60,000 messages", "/v1/responses", _naming_stored),
    Shape("16 documents", CHAT, _with_documents),
    Shape("16 files by id", CHAT, _naming_files),
    Shape("49 MB of text", CHAT, lambda part: _asking("Hello, " * int(7e6 * part))),
    Shape("100,000 short messages", "/v1/messages", _in_messages),
    Shape(
        "24 MB of sound in a form",
        "/v1/audio/transcriptions",
        _in_form,
        "multipart/form-data; boundary=b",
    ),
)
