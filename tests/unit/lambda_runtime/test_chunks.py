"""Chunks of a body as the Runtime API takes them."""

from tollgate.lambda_runtime.runtime_api import encode_chunk, encode_last_chunk


def test_an_empty_chunk_is_not_written_because_it_would_end_the_body() -> None:
    assert encode_chunk(b"") == b""
    assert encode_chunk(b"sixteen octets!!") == b"10\r\nsixteen octets!!\r\n"


def test_the_last_chunk_carries_the_trailers() -> None:
    assert encode_last_chunk() == b"0\r\n\r\n"
    assert encode_last_chunk({"A": "1", "B": "2"}) == b"0\r\nA: 1\r\nB: 2\r\n\r\n"
