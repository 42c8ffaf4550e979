"""What is no JSON, or too deep, is refused before it is understood.

Keeps C8.
"""

import pytest

from tests.unit.ingress.requests import body, refusal
from tollgate.core.content import Text
from tollgate.core.request import (
    UserMessage,
)
from tollgate.ingress.chat_completions.parse import parse


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"{}}", b'{"a":NaN}', b"\xef\xbb\xbf{}"])
def test_what_is_not_json_is_refused(raw: bytes) -> None:
    assert refusal(raw).message.startswith("The body is not valid JSON: ")


@pytest.mark.parametrize("raw", [b"[]", b"null", b'"text"', b"7"])
def test_json_that_is_not_an_object_is_refused(raw: bytes) -> None:
    assert refusal(raw).message == "The body must be a JSON object."


@pytest.mark.parametrize("escaped", [r"\ud800", r"\udc00", r"\ud800x", r"\ud800A"])
def test_half_a_surrogate_pair_is_refused(escaped: str) -> None:
    raw = b'{"model":"m","messages":[{"role":"user","content":"%b"}]}' % escaped.encode()
    refusal(raw)


def test_a_surrogate_pair_is_one_character() -> None:
    raw = rb'{"model":"m","messages":[{"role":"user","content":"\ud83d\ude00"}]}'
    assert parse(raw).request.messages == (UserMessage(content=(Text(text="\U0001f600"),)),)


def test_of_a_key_given_twice_the_last_counts() -> None:
    raw = b'{"model":"a","model":"b","messages":[{"role":"user","content":"hi"}]}'
    assert parse(raw).request.model == "b"


def nested(depth: int, innermost: str, opening: str, closing: str) -> bytes:
    """A request whose containers lie `depth` deep, the request itself counted."""
    inside = opening * (depth - 1) + innermost + closing * (depth - 1)
    return b'{"model":"m","messages":[{"role":"user","content":"hi"}],"x":%b}' % inside.encode()


@pytest.mark.parametrize("innermost", ["", "1"])
def test_c8_arrays_nested_200_deep_pass_and_201_are_refused(innermost: str) -> None:
    parse(nested(200, innermost, "[", "]"))
    error = refusal(nested(201, innermost, "[", "]"))
    assert error.message == "The body is nested deeper than 200 levels."


def test_c8_objects_nested_200_deep_pass_and_201_are_refused() -> None:
    parse(nested(200, "1", '{"k":', "}"))
    error = refusal(nested(201, "1", '{"k":', "}"))
    assert error.message == "The body is nested deeper than 200 levels."


def test_c8_an_empty_object_counts_as_a_level() -> None:
    parse(nested(199, "{}", '{"k":', "}"))
    parse(nested(199, "{}", "[", "]"))
    refusal(nested(200 + 1, "{}", "[", "]"))
    error = refusal(nested(200, "[{}]", "[", "]"))
    assert error.message == "The body is nested deeper than 200 levels."


def test_c8_a_million_brackets_are_refused() -> None:
    refusal(b"[" * 1_000_000)


def test_c8_many_brackets_side_by_side_are_not_deep() -> None:
    parse(body(x=[[]] * 1_000))
