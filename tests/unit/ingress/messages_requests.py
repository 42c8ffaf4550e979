"""Requests in Anthropic's format, and what becomes of them."""

import base64
import json
from typing import Any

import pytest

from tests.clocks import FixedClock
from tollgate.core.errors import RequestError
from tollgate.core.ids import IdSource
from tollgate.core.request import (
    GenerationRequest,
)
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.messages import Messages

FORMAT = Messages(IdSource(FixedClock()))
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()
PDF = base64.b64encode(b"%PDF-1.7\n" + bytes(16)).decode()
HI: Any = {"role": "user", "content": "Hi"}
HOUR: Any = {"type": "ephemeral", "ttl": "1h"}
SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER: Any = {"name": "weather", "input_schema": SCHEMA}
USE: Any = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}}


def parsed(*messages: Any, headers: dict[str, str] | None = None, **fields: Any) -> ParsedCall:
    body = {"model": "acme/m", "max_tokens": 100, "messages": messages or [HI], **fields}
    return FORMAT.parse(json.dumps(body).encode(), headers or {})


def request(*messages: Any, **fields: Any) -> GenerationRequest:
    return parsed(*messages, **fields).request


def user(*blocks: Any) -> Any:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> Any:
    return {"role": "assistant", "content": list(blocks)}


def text(said: str, **fields: Any) -> Any:
    return {"type": "text", "text": said, **fields}


def result(**fields: Any) -> Any:
    return {"type": "tool_result", "tool_use_id": "toolu_1", **fields}


def refusal(*messages: Any, **fields: Any) -> RequestError:
    with pytest.raises(RequestError) as raised:
        parsed(*messages, **fields)
    return raised.value
