"""What is no recording is refused, and the length of one is measured and bounded.

Keeps C82.
"""

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cells import cells
from tests.unit.ingress.media_samples import JPEG, PDF, PNG
from tests.unit.ingress.recordings import (
    FLAC,
    MP3_FRAME,
    OGG,
    WEBM,
    extensible,
    mp3,
    mp4,
    ogg_page,
    wav,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.work.recording import RECORDING_BYTES_MAX, RECORDING_SECONDS_MAX, RecordingFormat
from tollgate.ingress.work.transcription.format import parse_transcription
from tollgate.ingress.work.transcription.recordings import read_recording


@pytest.mark.parametrize(
    ("content", "seconds"),
    [
        (wav(16_000), 1),
        (wav(16_001), 2),
        (wav(1), 1),
        (wav(8_000 * 90, rate=8_000, bits=8, tag=7), 90),
        (wav(48_000 * 3, rate=48_000, channels=2, bits=32, tag=3), 3),
        # The rate of bytes that the header states is not believed where samples have a size.
        (wav(32_000, byte_rate=10**9), 2),
        (wav(32_000, byte_rate=10**9, tag=0xFFFE, extension=extensible(1)), 2),
        (wav(32_000, byte_rate=10**9, tag=0xFFFE, extension=extensible(1)[:10]), 2),
        # A writer that cannot go back: the rest of the file.
        (wav(32_000, size=0xFFFFFFFF), 2),
        (wav(32_000, size=0), 2),
        (wav(16_000, extra=b"LIST\3\0\0\0abc\0"), 1),
    ],
)
def test_c82_the_length_of_a_wav_file_is_exact(content: bytes, seconds: int) -> None:
    found = read_recording(content, "file")
    assert (found.format, found.seconds, found.seconds_max) == ("wav", seconds, seconds)


def test_c65_c82_samples_after_the_first_ones_are_held() -> None:
    more = wav(16_000, size=2) + b"data" + (32_000).to_bytes(4, "little") + bytes(32_000)
    found = read_recording(more, "file")
    assert (found.seconds, found.seconds_max) == (1, 3)


def test_c65_c82_law_samples_are_bytes_whatever_their_header_states() -> None:
    header = wav(0, rate=8_000, bits=65_535, tag=7, size=80_000)
    found = read_recording(header + bytes(80_000), "file")
    assert (found.seconds, found.seconds_max) == (10, 10)


@pytest.mark.parametrize(
    ("tag", "extension"),
    [
        (0x31, b""),
        (0xFFFE, extensible(0x31)),
        # It does not say of what form it is.
        (0xFFFE, b""),
        (0xFFFE, extensible(1)[:8]),
        # An extension counts with its own tag alone.
        (0x31, extensible(1)),
    ],
)
def test_c82_compressed_samples_are_bounded_by_their_bytes(tag: int, extension: bytes) -> None:
    content = wav(32_000, tag=tag, byte_rate=1_000_000, extension=extension)
    found = read_recording(content, "file")
    assert (found.seconds, found.seconds_max) == (1, 64)


@pytest.mark.parametrize(
    ("content", "format_", "seconds", "seconds_max"),
    [
        # 26 ms each; 8 kbit/s at least.
        (mp3(1_000), "mp3", 27, 417),
        (b"ID3\x04\0\0\0\0\0\0" + mp3(100), "mp3", 3, 42),
        (mp4(75), "mp4", 75, 75),
        # No length is stated: 64 kbit/s are likely, 6 the least.
        (WEBM, "webm", 1, 3),
        (OGG + bytes(16_000), "ogg", 3, 22),
    ],
)
def test_c82_other_formats_have_a_likely_length_and_a_bound(
    content: bytes, format_: RecordingFormat, seconds: int, seconds_max: int
) -> None:
    found = read_recording(content, "file")
    assert (found.format, found.seconds, found.seconds_max) == (format_, seconds, seconds_max)


def test_c82_a_stated_length_beyond_all_measure_is_cut() -> None:
    assert read_recording(mp4(10**6), "file").seconds == RECORDING_SECONDS_MAX


@cells(
    ("content", "words"),
    [
        (b"", "must not be empty"),
        (b"RIFF", "must be a recording"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "must be a recording"),
        (PNG, "must be a recording"),
        (JPEG, "must be a recording"),
        (PDF, "must be a recording"),
        (b"not a recording at all", "must be a recording"),
        ("Zwei Bytes zuvor".encode("utf-16"), "must be a recording"),
        (b"\xff\xf1\x50\x80" + bytes(400), "must be a recording"),  # AAC
        (wav(16_000)[:12], "header is incomplete"),
        (wav(16_000)[:20], "header is incomplete"),
        (wav(16_000)[:40], "header is incomplete"),
        (wav(16_000)[:44], "32,000 bytes of samples, the file has 0"),
        (wav(16_000)[:-1], "32,000 bytes of samples, the file has 31,999"),
        (wav(0), "has no samples"),
        (wav(16_000, rate=0), "states no sample rate"),
        (wav(16_000, channels=0), "states no sample rate"),
        (wav(1, bits=65_528), "states no sample rate"),
        (wav(16_000, extra=wav(1, rate=4 * 10**9, byte_rate=1)[12:36]), "has two formats"),
        (wav(16_000, tag=0x31, byte_rate=0), "states no sample rate"),
        (b"fLaC" + bytes(8), "is not a readable flac file"),
        (b"OggS" * 20, "is not a readable ogg file"),
    ],
)
def test_c82_what_is_no_recording_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        read_recording(content, "url")
    assert (caught.value.code, caught.value.param) == (ErrorCode.INVALID_REQUEST, "url")


def test_c82_a_recording_of_more_than_25_mib_is_too_large() -> None:
    most = wav((RECORDING_BYTES_MAX - 44) // 2)
    assert read_recording(most, "file").seconds == 820
    with pytest.raises(RequestError, match="26,214,400 bytes") as caught:
        read_recording(most + b"\0", "file")
    assert (caught.value.code, caught.value.param) == (ErrorCode.PAYLOAD_TOO_LARGE, "file")


@pytest.mark.parametrize(
    "content",
    [
        MP3_FRAME[:3] + b"\xff" * RECORDING_BYTES_MAX,
        b"\0\0\0\x10ftypM4A \0\0\0\0" + b"\0\0\0\x08moov" * 3_000_000,
        FLAC[:4] + b"\1\0\0\0" * 6_000_000,
    ],
)
def test_a_header_that_never_ends_is_not_read_for_long(content: bytes) -> None:
    started = time.process_time()
    found = read_recording(content[:RECORDING_BYTES_MAX], "file")
    # 18 s without a limit of reads.
    assert time.process_time() - started < 2
    assert found.seconds == -(-len(found.content) * 8 // 64_000)


def test_c82_the_length_of_flac_in_ogg_is_that_of_its_first_page() -> None:
    facts = bytes(10) + (16_000 << 44 | 16_000 * 90).to_bytes(8, "big") + bytes(16)
    content = ogg_page(b"\x7fFLAC\1\0\0\1fLaC\x80\0\0\x22" + facts) + ogg_page(bytes(60_000)) * 20
    assert read_recording(content, "file").seconds == 90


def test_packets_that_never_end_are_not_read_for_long() -> None:
    endless = b"\x7fFLAC\1\0\0\1fLaC" + b"\1\0\0\0" * 6_000_000
    content = b"".join(
        ogg_page(endless[place : place + 65_025]) for place in range(0, len(endless), 65_025)
    )
    started = time.process_time()
    read_recording(content, "file")
    # 4.8 s of 24 MB, if they are.
    assert time.process_time() - started < 1


@given(
    start=st.sampled_from([b"", wav(4), FLAC, OGG, WEBM[:9], mp3(2), mp4(1)]),
    cut=st.integers(0, 80),
    rest=st.binary(max_size=200),
)
def test_any_bytes_are_a_recording_or_refused(start: bytes, cut: int, rest: bytes) -> None:
    with contextlib.suppress(RequestError):
        found = read_recording(start[:cut] + rest, "file")
        assert 1 <= found.seconds <= found.seconds_max


def test_text_in_place_of_a_recording_is_not_searched() -> None:
    started = time.process_time()
    asked = {"model": "acme/ear", "file": "data:" * 400_000}
    with pytest.raises(RequestError, match="base64"):
        parse_transcription(json.dumps(asked).encode(), {})
    assert time.process_time() - started < 1
