"""Reads an OTLP export in protobuf as the JSON that OTLP defines for it."""

import struct
from collections.abc import Iterator
from typing import Any

_Field = tuple[int, Any]


def read_export(body: bytes) -> dict[str, Any]:
    """Return the schema and the spans of an export with one scope."""
    [resource_spans] = _all(body, 1)
    [scope_spans] = _all(resource_spans, 2)
    [schema] = _all(scope_spans, 3)
    [resource] = _all(resource_spans, 1)
    return {
        "schema": schema.decode(),
        "service": dict(map(_attribute, _all(resource, 1)))["service.name"],
        "spans": [_span(each) for each in _all(scope_spans, 2)],
    }


def _span(body: bytes) -> dict[str, Any]:
    fields = dict(_fields(body))
    span = {
        "trace": fields[1].hex(),
        "id": fields[2].hex(),
        "parent": fields[4].hex() if 4 in fields else None,
        "name": fields[5].decode(),
        "kind": fields[6],
        "start_ns": fields[7],
        "end_ns": fields[8],
        "attributes": dict(map(_attribute, _all(body, 9))),
    }
    if 15 in fields:
        status = dict(_fields(fields[15]))
        span["status"] = (status[3], status[2].decode())
    return span


def _attribute(body: bytes) -> tuple[str, Any]:
    fields = dict(_fields(body))
    return fields[1].decode(), _value(fields[2])


def _value(body: bytes) -> Any:
    [(kind, value)] = _fields(body)
    match kind:
        case 1:
            return value.decode()
        case 2:
            return bool(value)
        case 4:
            return struct.unpack("<d", struct.pack("<Q", value))[0]
        case 5:
            return [_value(each) for each in _all(value, 1)]
    return value


def _all(body: bytes, number: int) -> list[Any]:
    return [value for field, value in _fields(body) if field == number]


def _fields(body: bytes) -> Iterator[_Field]:
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        match tag & 7:
            case 0:
                value, at = _varint(body, at)
                yield tag >> 3, value
            case 1:
                yield tag >> 3, struct.unpack_from("<Q", body, at)[0]
                at += 8
            case 2:
                size, at = _varint(body, at)
                yield tag >> 3, body[at : at + size]
                at += size
            case other:
                raise ValueError(f"wire type {other}")


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (body[at] & 127) << shift
        at, shift, more = at + 1, shift + 7, body[at] & 128
        if not more:
            return value, at
