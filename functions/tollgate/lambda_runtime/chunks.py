"""Write a chunked body, as a streamed response to Lambda is sent."""

from collections.abc import Mapping


def encode_chunk(octets: bytes) -> bytes:
    """Encode one chunk of a chunked body; no octets give no chunk, since it would end the body."""
    return b"%x\r\n%b\r\n" % (len(octets), octets) if octets else b""


def encode_last_chunk(trailers: Mapping[str, str] | None = None) -> bytes:
    """Encode the end of a chunked body."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in (trailers or {}).items())
    return b"0\r\n%b\r\n" % fields.encode("latin-1", errors="replace")
