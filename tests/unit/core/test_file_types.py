"""The type of an uploaded file: by its first bytes, and by what is stated of it.

Keeps C70.
"""

import pytest

from tests.unit.ingress.media_samples import MP3, PNG, WAV
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.file_types import read_media_type

OGG = b"OggS" + bytes(8)
FLAC = b"fLaC" + bytes(8)
MP4 = b"\0\0\0\x18ftypM4A " + bytes(8)


def type_of(head: bytes, filename: str, stated: str | None = None) -> str:
    return read_media_type(
        head, is_whole=True, filename=filename, stated=stated, purpose="user_data"
    )


@pytest.mark.parametrize(
    ("head", "filename", "stated", "type_"),
    [
        (WAV, "a.wav", None, "audio/wav"),
        (MP3, "a.mp3", "audio/mp3", "audio/mpeg"),
        (OGG, "a.ogg", None, "audio/ogg"),
        (OGG, "a.opus", "audio/opus", "audio/ogg"),
        (FLAC, "a.flac", "audio/x-flac", "audio/flac"),
        (MP4, "a.m4a", None, "audio/mp4"),
        (MP4, "a.m4a", "audio/x-m4a", "audio/mp4"),
        (MP4, "a.mp4", None, "audio/mp4"),
    ],
)
def test_c70_c82_a_recording_that_can_be_written_down_is_taken(
    head: bytes, filename: str, stated: str | None, type_: str
) -> None:
    assert type_of(head, filename, stated) == type_


@pytest.mark.parametrize(
    ("head", "filename"), [(OGG, "a.mp3"), (FLAC, "a.png"), (MP4, "a.wav"), (PNG, "a.flac")]
)
def test_c70_a_recording_of_another_type_is_a_mismatch(head: bytes, filename: str) -> None:
    with pytest.raises(RequestError) as refused:
        type_of(head, filename)
    assert refused.value.code is ErrorCode.MIME_MISMATCH
