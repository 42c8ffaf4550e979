"""Vectors as JSON, which stay the bytes that their provider sent."""

import json
from base64 import b64decode, b64encode
from struct import pack, unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.core.work.vectors import MalformedVector, convert_vector, vector_size

NUMBERS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1)


@given(NUMBERS)
def test_a_vector_survives_the_way_to_base64_and_back(numbers: list[float]) -> None:
    array = json.dumps(numbers).encode()
    packed = convert_vector(array, "base64")
    assert unpack(f"<{len(numbers)}f", b64decode(packed[1:-1])) == tuple(numbers)
    assert json.loads(convert_vector(packed, "float")) == numbers
    assert vector_size(array) == vector_size(packed) == len(numbers)


@given(NUMBERS)
def test_a_vector_in_the_form_that_is_wanted_is_not_touched(numbers: list[float]) -> None:
    array = json.dumps(numbers, indent=1).encode()
    packed = json.dumps(b64encode(pack(f"<{len(numbers)}f", *numbers)).decode()).encode()
    assert convert_vector(array, "float") is array
    assert convert_vector(packed, "base64") is packed


@pytest.mark.parametrize(
    "broken",
    [
        *("[]", "[ ]", "[null]", "[true]", "[false]", '["1"]', "[[1]]", "[{}]"),
        *('""', '"AA=="', '"!"', '"AAAA"', "1", "null", "{}"),
    ],
)
def test_what_is_no_vector_is_refused(broken: str) -> None:
    with pytest.raises(MalformedVector):
        vector_size(broken.encode())
