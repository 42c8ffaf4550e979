"""The size of a picture, read from its own file."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pictures import png
from tollgate.core.files.picture_files import find_picture_fault, picture_format, pixel_size

_APP0 = b"\xff\xe0\x00\x04ab"
_WEBP = b"RIFF\x00\x00\x00\x00WEBP"


@pytest.mark.parametrize(
    ("content", "name", "size"),
    [
        (png(300, 7), "png", (300, 7)),
        (b"GIF89a\x2c\x01\x07\x00\x00\x00\x00", "gif", (300, 7)),
        (b"\xff\xd8%b\xff\xff\xc2\x00\x11\x08\x00\x07\x01\x2c\x03" % _APP0, "jpeg", (300, 7)),
        (_WEBP + b"VP8X\x0a\0\0\0\0\0\0\0\x2b\x01\x00\x06\x00\x00", "webp", (300, 7)),
        (_WEBP + b"VP8L\x0a\0\0\0\x2f\x2b\x81\x01\x00\0\0\0\0\0", "webp", (300, 7)),
        (_WEBP + b"VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x2c\x01\x07\x00", "webp", (300, 7)),
    ],
)
def test_a_picture_states_its_format_and_size(
    content: bytes, name: str, size: tuple[int, int]
) -> None:
    assert (picture_format(content), pixel_size(content)) == (name, size)
    assert find_picture_fault(content) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"words",
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG" + b"\0" * 64,
        png(0, 4),
        png(4, 4)[:32],
        b"\xff\xd8\xff\xe0\x00\x04ab",
        b"\xff\xd8" + b"\xff\xe0\x00\x02" * 9,
        _WEBP + b"VP8Z" + b"\0" * 14,
        b"%PDF-1.7",
        b"RIFF\x00\x00\x00\x00WAVEfmt ",
    ],
)
def test_what_is_no_picture_has_neither(content: bytes) -> None:
    assert picture_format(content) is None
    assert find_picture_fault(content) == "must be a PNG, JPEG, GIF or WebP image"


def test_a_picture_that_states_too_many_pixels_is_refused() -> None:
    assert "50000000 pixels" in (find_picture_fault(png(stated=(60_000, 60_000))) or "")


def test_a_picture_of_fill_bytes_is_not_read_for_long() -> None:
    started = time.process_time()
    assert pixel_size(b"\xff\xd8" + b"\xff" * 20_000_000) is None
    assert time.process_time() - started < 1


@given(st.binary(max_size=64), st.sampled_from([b"\x89PNG", b"\xff\xd8\xff", _WEBP, b"GIF89a"]))
def test_no_bytes_break_the_reader(content: bytes, head: bytes) -> None:
    size = pixel_size(head + content)
    assert size is None or min(size) > 0
