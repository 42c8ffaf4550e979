"""Arguments in pieces (quirk 21) become one JSON text; every chunk here is synthetic."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.gemini.test_decode import SIGNED, answer, failure
from tests.upstream.gemini_chunks import SIGNATURE, call, chunk, piece, text
from tollgate.core.content import ToolCall
from tollgate.core.errors import ErrorCode


def arguments(*parts: dict[str, Any]) -> object:
    response = answer(
        chunk(call("cook", willContinue=True)), *map(chunk, parts), chunk(call(), finish="STOP")
    )
    (part,) = response.parts
    assert isinstance(part, ToolCall)
    return json.loads(part.arguments)


def test_q21_texts_grow_and_objects_may_be_taken_up_again() -> None:
    assert arguments(
        piece("$.recipe.steps[0].do", stringValue="bo"),
        piece("$.recipe.steps[0].do", stringValue="il"),
        piece("$.recipe.steps[0].do", stringValue=""),
        call(willContinue=True),
        piece("$.recipe.steps[1]", stringValue="eat"),
        piece("$.recipe.name", stringValue="Grüße"),
    ) == {"recipe": {"steps": [{"do": "boil"}, "eat"], "name": "Grüße"}}


def test_q21_other_values_come_whole() -> None:
    assert arguments(
        piece("$.count", numberValue=3),
        piece("$.share", numberValue=0.5),
        piece("$.hot", boolValue=False),
        piece("$.note", nullValue="NULL_VALUE"),
        piece("$.unset"),
    ) == {"count": 3, "share": 0.5, "hot": False, "note": None}


def test_q21_names_may_be_quoted() -> None:
    assert arguments(
        piece("$['a.b']", stringValue="1"),
        piece('$["c[0]"].d', stringValue="2"),
        piece(r"$['it\'s']", stringValue="3"),
    ) == {"a.b": "1", "c[0]": {"d": "2"}, "it's": "3"}


def test_q21_a_call_is_complete_when_it_does_not_go_on() -> None:
    response = answer(
        chunk(call("read", willContinue=True, signature=SIGNATURE, id="a")),
        chunk(piece("$.id", stringValue="A", more=False)),
        chunk(call("read", willContinue=True, id="b")),
        chunk(piece("$.id", stringValue="B")),
        chunk(call("now", id="c")),
        chunk(text("Done."), finish="STOP"),
    )
    assert response.parts[:3] == (
        ToolCall(id="a", name="read", arguments='{"id":"A"}', provenance=SIGNED),
        ToolCall(id="b", name="read", arguments='{"id":"B"}'),
        ToolCall(id="c", name="now", arguments="{}"),
    )


@pytest.mark.parametrize(
    "path",
    [
        "",
        "$",
        "id",
        "$id",
        "$.",
        "$[",
        "$[x]",
        "$[0]",
        "$.a[1]",
        "$.a[999999999]",
        "$.a[0].b",
        "$.s.x",
    ],
)
def test_a_piece_for_no_known_place_is_an_error(path: str) -> None:
    error = failure(
        chunk(call("f", willContinue=True)),
        chunk(piece("$.a[0]", stringValue="x")) if path == "$.a[0].b" else chunk(),
        chunk(piece("$.s", stringValue="x")),
        chunk(piece(path, stringValue="y")),
    )
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert "with an invalid path" in error.message


def test_a_text_cannot_follow_another_value_in_its_place() -> None:
    error = failure(
        chunk(call("f", willContinue=True)),
        chunk(piece("$.a", numberValue=1)),
        chunk(piece("$.a", stringValue="x")),
    )
    assert "with an invalid path" in error.message


def test_a_piece_after_its_call_is_complete_belongs_to_none() -> None:
    error = failure(
        chunk(call("f", willContinue=True)),
        chunk(piece("$.a", stringValue="x", more=False)),
        chunk(piece("$.a", stringValue="y")),
    )
    assert "has no name" in error.message


def _pieces(value: Any, path: str) -> Iterator[dict[str, Any]]:
    match value:
        case dict():
            for name, inner in value.items():
                yield from _pieces(inner, f"{path}['{name}']")
        case list():
            for index, inner in enumerate(value):
                yield from _pieces(inner, f"{path}[{index}]")
        case str():
            yield piece(path, stringValue=value[:1])
            yield piece(path, stringValue=value[1:])
        case bool():
            yield piece(path, boolValue=value)
        case None:
            yield piece(path, nullValue="NULL_VALUE")
        case _:
            yield piece(path, numberValue=value)


leaves = st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=3)
names = st.text(alphabet="ab.[] ", min_size=1, max_size=3)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(names, inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(names, values, max_size=3))
def test_any_arguments_in_pieces_are_the_same_whole(value: dict[str, Any]) -> None:
    assert arguments(*_pieces(value, "$")) == value
