"""What is no JSON, or too deep, is refused before it is understood.

Keeps C8.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from tests.unit.ingress.requests import body, refusal
from tollgate.core.content import Text
from tollgate.core.errors import RequestError
from tollgate.core.request import (
    UserMessage,
)
from tollgate.ingress.chat_completions.parse import parse
from tollgate.ingress.validation import decode_object

# Texts, numbers and words at the edges of what JSON is.
EDGES = [
    *[rb'"\ud800"', rb'"\udc00x"', rb'"\ud83d\ude00"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\x01"'],
    *[b"1e309", b"-1e309", b"1e-400", b"5e-324", b"-0", b"-0.0", b"01", b"1.", b".5", b"+1"],
    *[b"18446744073709551616", b"9007199254740993.0", b"1" * 4_400, b"NaN", b"-Infinity"],
    *[
        b"[]",
        b"{}",
        b"[1,]",
        b"null",
        b"nul",
        b'"\xc3\xa9"',
        b'{"k":1,"k":2}',
        b"{'k':1}",
        b"\xa01",
    ],
]


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


def outcome(raw: bytes) -> str:
    try:
        return repr(decode_object(raw))
    except RequestError as refused:
        return refused.message


def outcome_by_pydantic(raw: bytes) -> str:
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        return f"The body is not valid JSON: {error}."
    return repr(value) if isinstance(value, dict) else "The body must be a JSON object."


@given(st.lists(st.sampled_from(EDGES), max_size=3), st.binary(max_size=2), st.integers(0, 40))
def test_c8_what_is_decoded_does_not_depend_on_the_decoder(
    edges: list[bytes], stray: bytes, at: int
) -> None:
    whole = b'{"x":[%b]}' % b",".join(edges)
    raw = whole[:at] + stray + whole[at:]
    assert outcome(raw) == outcome_by_pydantic(raw)


def test_c8_what_is_not_json_is_refused_by_line_and_column() -> None:
    assert refusal(b'{"model":\n 1 2}').message.endswith("at line 2 column 4.")
