"""Encodes the HTTP/1.1 chunks in which a streamed response is sent to Lambda."""

from collections.abc import Mapping


def encode_chunk(octets: bytes) -> bytes:
    """Return one chunk; empty for no octets, because an empty chunk would end the body."""
    return b"%x\r\n%b\r\n" % (len(octets), octets) if octets else b""


def encode_last_chunk(trailers: Mapping[str, str] | None = None) -> bytes:
    """Return the empty chunk and the trailers that end a chunked body."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in (trailers or {}).items())
    return b"0\r\n%b\r\n" % fields.encode("latin-1", errors="replace")
