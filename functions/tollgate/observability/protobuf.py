"""Writes OTLP's messages in protobuf's binary format, without a library.

Encoding: protobuf.dev/programming-guides/encoding, 2026-11-28. Field numbers: trace/v1, common/v1
and resource/v1 of github.com/open-telemetry/opentelemetry-proto 1.9.0, 2026-11-28.
"""

from collections.abc import Iterable, Mapping
from struct import pack
from typing import Final

from msgspec import Struct

# A value of None is no attribute.
SpanValue = str | bool | int | float | tuple[str, ...] | None
SpanAttributes = Mapping[str, SpanValue]

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_UINT64: Final = (1 << 64) - 1
_MORE: Final = 0x80
_STATUS_ERROR: Final = 2


class SpanMessage(Struct, frozen=True, kw_only=True):
    """The fields of `Span` that Tollgate sends; ids are in hex."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: SpanAttributes
    error: str | None

    def encode(self) -> bytes:
        """Return the message."""
        status = b"" if self.error is None else _text(2, self.error) + _number(3, _STATUS_ERROR)
        parent = self.parent_span_id
        fields = (
            _bytes(1, bytes.fromhex(self.trace_id)),
            _bytes(2, bytes.fromhex(self.span_id)),
            b"" if parent is None else _bytes(4, bytes.fromhex(parent)),
            _text(5, self.name),
            _number(6, self.kind),
            _fixed64(7, self.start_ns),
            _fixed64(8, self.end_ns),
            _attributes(9, self.attributes),
            status and _bytes(15, status),
        )
        return b"".join(fields)


def encode_export(spans: Iterable[bytes], *, service: str, schema_url: str) -> bytes:
    """Return an `ExportTraceServiceRequest` of encoded spans."""
    resource = _attributes(1, {"service.name": service})
    scope = _bytes(1, _text(1, service))
    scope_spans = scope + b"".join(_bytes(2, span) for span in spans) + _text(3, schema_url)
    return _bytes(1, _bytes(1, resource) + _bytes(2, scope_spans))


def _attributes(field: int, attributes: SpanAttributes) -> bytes:
    pairs = ((name, value) for name, value in attributes.items() if value is not None)
    return b"".join(
        _bytes(field, _text(1, name) + _bytes(2, _any_value(value))) for name, value in pairs
    )


def _any_value(value: str | bool | int | float | tuple[str, ...]) -> bytes:
    match value:
        case str():
            return _text(1, value)
        case bool():
            return _number(2, value)
        case int():
            return _number(3, value)
        case float():
            return _tag(4, _FIXED64) + pack("<d", value)
        case _:
            return _bytes(5, b"".join(_bytes(1, _text(1, each)) for each in value))


def _text(field: int, text: str) -> bytes:
    # A lone surrogate, which JSON may contain, has no UTF-8.
    return _bytes(field, text.encode(errors="replace"))


def _bytes(field: int, content: bytes) -> bytes:
    return _tag(field, _LENGTH) + _varint(len(content)) + content


def _number(field: int, value: int) -> bytes:
    return _tag(field, _VARINT) + _varint(value & _UINT64)


def _fixed64(field: int, value: int) -> bytes:
    return _tag(field, _FIXED64) + pack("<Q", value)


def _tag(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= _MORE:
        encoded.append(value & (_MORE - 1) | _MORE)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
