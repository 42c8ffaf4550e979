"""Vectors as JSON: an array of numbers, or base64-encoded little-endian 32-bit floats.

A vector is passed on as the provider sent it unless the caller wants the other encoding, because
parsing 2,048 vectors of 3,072 numbers takes seconds.
"""

import sys
from array import array
from base64 import b64decode, b64encode
from binascii import Error
from math import isfinite
from typing import Final

import msgspec

from tollgate.core.work.embedding import VectorEncoding

_BYTES_PER_NUMBER: Final = 4
# Bytes that occur in strings, objects, null, true and false, but not in arrays of numbers.
_NO_NUMBERS: Final = (b'"', b"{", b"u", b"s")
_NUMBERS: Final = msgspec.json.Decoder(list[float])


class MalformedVector(ValueError):
    """Raised for JSON that is not a vector."""


def vector_size(vector: bytes) -> int:
    """Return the number of values in a vector; raise MalformedVector for anything else.

    `vector` must be valid JSON. An array is not parsed. Instead, its commas are counted, and it is
    rejected if it contains a quotation mark, a second bracket, or a letter of null, true or false.
    """
    if vector[:1] == b"[":
        if vector.find(b"[", 1) >= 0 or any(mark in vector for mark in _NO_NUMBERS):
            raise MalformedVector("not an array of numbers")
        # Slicing would copy the vector.
        commas = vector.count(b",")
        if not commas and not vector.strip(b"[] \t\r\n"):
            raise MalformedVector("an empty array")
        return commas + 1
    return len(_floats(vector)) // _BYTES_PER_NUMBER


def convert_vector(vector: bytes, encoding: VectorEncoding) -> bytes:
    """Return a vector in an encoding, unchanged if it already has that encoding.

    Raises MalformedVector for a number that does not fit into 32 bits or that JSON cannot
    represent.
    """
    is_array = vector[:1] == b"["
    if is_array == (encoding == "float"):
        return vector
    if is_array:
        try:
            numbers = array("f", _NUMBERS.decode(vector))
        except msgspec.ValidationError as invalid:
            raise MalformedVector("a number out of range") from invalid
        _check_finite(numbers)
        return b'"%b"' % b64encode(_in_wire_order(numbers).tobytes())
    numbers = array("f")
    numbers.frombytes(_floats(vector))
    numbers = _in_wire_order(numbers)
    _check_finite(numbers)
    return msgspec.json.encode(numbers.tolist())


def _check_finite(numbers: "array[float]") -> None:
    # The sum of finite 32-bit floats is a finite 64-bit one.
    if not isfinite(sum(numbers)):
        raise MalformedVector("a number that is not finite")


def _floats(vector: bytes) -> bytes:
    if vector[:1] != b'"':
        raise MalformedVector("neither an array nor a string")
    try:
        floats = b64decode(vector[1:-1], validate=True)
    except Error as invalid:
        raise MalformedVector("not base64") from invalid
    if not floats or len(floats) % _BYTES_PER_NUMBER:
        raise MalformedVector("not 32-bit floats")
    return floats


def _in_wire_order(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
