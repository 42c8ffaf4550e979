"""Requests as a client writes them, and what the parser says of them."""

import json
from typing import Any

import pytest

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.chat_completions.parse import parse

HELLO = [{"role": "user", "content": "hi"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        "strict": True,
    },
}


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "test/echo", "messages": HELLO, **fields}).encode()


def understood(**fields: Any) -> ParsedCall:
    return parse(body(**fields))


def refusal(raw: bytes) -> RequestError:
    with pytest.raises(RequestError) as refused:
        parse(raw)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    return refused.value
