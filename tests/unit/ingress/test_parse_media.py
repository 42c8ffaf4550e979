"""C11: pictures, sounds and files in every spelling, and what is refused of them.

Keeps C11.
"""

import time
from typing import Any

import pytest

from tests.cells import cells
from tests.unit.ingress.media_samples import (
    GIF,
    JPEG,
    MP3,
    PDF,
    PNG,
    UNKNOWN,
    WAV,
    WEBM,
    WEBP,
    ZIP,
    audio,
    b64,
    data_url,
    file,
    image,
)
from tests.unit.ingress.requests import HELLO, WEATHER, body, refusal, understood
from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    FileReference,
    Image,
    InlineMedia,
    MediaUrl,
    Text,
)
from tollgate.core.errors import RequestError
from tollgate.ingress.chat_completions.parse import parse
from tollgate.ingress.shared import media

PICTURE = "https://example.com/a.png?size=1"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def meant(part: dict[str, Any], role: str = "user") -> object:
    if role == "tool":
        return understood(messages=handed_back(part)).request.messages[-1].content[0]
    said = {"role": role, "content": [part]}
    return understood(messages=[said]).request.messages[0].content[0]


def handed_back(part: dict[str, Any]) -> list[Any]:
    """A call, and a part of its result."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c", "content": [part]}
    return [*HELLO, {"role": "assistant", "tool_calls": [call]}, result]


def refused(part: dict[str, Any]) -> RequestError:
    return refusal(body(messages=[{"role": "user", "content": [part]}]))


def inline(type_: str, content: bytes) -> InlineMedia:
    return InlineMedia(media_type=type_, base64=b64(content))


@pytest.mark.parametrize(
    ("content", "type_"),
    [(PNG, "image/png"), (JPEG, "image/jpeg"), (GIF, "image/gif"), (WEBP, "image/webp")],
)
def test_c11_a_picture_in_a_data_url_has_the_type_of_its_bytes(content: bytes, type_: str) -> None:
    assert meant(image(data_url(content, "image/x-lie"))) == Image(source=inline(type_, content))


@pytest.mark.parametrize("detail", ["auto", "low", "high"])
def test_c11_a_picture_may_lie_behind_a_url(detail: str) -> None:
    assert meant(image(PICTURE, detail=detail)) == Image(
        source=MediaUrl(url=PICTURE), detail=detail
    )


@pytest.mark.parametrize(
    ("content", "format_", "type_"),
    [(WAV, "wav", "audio/wav"), (MP3, "mp3", "audio/mpeg"), (WEBM, "webm", "audio/webm")],
)
def test_c11_sounds_are_understood(content: bytes, format_: str, type_: str) -> None:
    meaning = Audio(source=inline(type_, content), format=format_)
    assert meant(audio(b64(content), format_)) == meaning
    assert meant(audio(data_url(content), format_)) == meaning


def test_c11_a_sound_with_a_wrong_format_has_the_format_of_its_bytes() -> None:
    assert meant(audio(b64(WAV), "mp3")) == Audio(source=inline("audio/wav", WAV), format="wav")


def test_c11_samples_without_a_header_are_taken_at_their_word() -> None:
    samples = inline("audio/pcm", UNKNOWN)
    assert meant(audio(b64(UNKNOWN), "pcm16")) == Audio(source=samples, format="pcm16")


@pytest.mark.parametrize(
    "part",
    [
        file(file_data=data_url(PDF), filename="a.pdf"),
        file(file_data=b64(PDF), filename="a.pdf"),
        file(file_data=b64(PDF), mime_type="application/pdf", filename="a.pdf"),
        {"type": "file", "data": b64(PDF), "mime_type": "application/pdf", "filename": "a.pdf"},
        {"type": "file", "data": data_url(PDF, "text/plain"), "filename": "a.pdf"},
    ],
)
def test_c11_a_file_is_understood_in_every_spelling(part: dict[str, Any]) -> None:
    assert meant(part) == Document(source=inline("application/pdf", PDF), filename="a.pdf")


@pytest.mark.parametrize(
    ("content", "claimed", "type_"),
    [
        (b"a,b\n1,2", "text/csv; charset=utf-8", "text/csv"),
        (b"# hi", "text/markdown", "text/markdown"),
        ("é".encode(), None, "text/plain"),
        (b"plain", "application/x-made-up", "text/plain"),
        (ZIP, DOCX, DOCX),
    ],
)
def test_c11_a_claim_tells_apart_what_looks_alike(
    content: bytes, claimed: str | None, type_: str
) -> None:
    part = {"type": "file", "data": b64(content), "mime_type": claimed}
    assert meant(part) == Document(source=inline(type_, content))


def test_c11_a_data_url_need_not_be_base64() -> None:
    part = file(file_data="data:text/plain,hello%20you")
    assert meant(part) == Document(source=inline("text/plain", b"hello you"))


@pytest.mark.parametrize("field", ["file_url", "file_data"])
def test_c11_a_file_may_lie_behind_a_url(field: str) -> None:
    url = "https://example.com/a.pdf"
    assert meant(file(**{field: url})) == Document(source=MediaUrl(url=url))


def test_c11_a_file_that_is_a_picture_or_a_sound_is_one() -> None:
    assert meant(file(file_data=b64(PNG))) == Image(source=inline("image/png", PNG))
    assert meant(file(file_data=b64(MP3))) == Audio(source=inline("audio/mpeg", MP3), format="mp3")


def test_c11_a_tool_may_hand_back_pictures_and_files() -> None:
    assert meant(image(PICTURE), "tool") == Image(source=MediaUrl(url=PICTURE))
    assert meant(file(file_data=b64(PDF)), "tool") == Document(
        source=inline("application/pdf", PDF)
    )


def test_c11_a_tool_hands_back_no_sound() -> None:
    result = handed_back(file(file_data=b64(WAV)))
    assert refusal(body(messages=result)).param == "messages[2].content[0]"


@cells(
    ("part", "param"),
    [
        (image(data_url(PDF, "image/png")), "image_url.url"),
        (image(data_url(UNKNOWN, "image/png")), "image_url.url"),
        (image("data:image/png;base64,not base64"), "image_url.url"),
        (image("data:image/png;base64,iVBORw0KGg"), "image_url.url"),
        (image("data:image/png;base64,"), "image_url.url"),
        (image("file:///etc/passwd"), "image_url.url"),
        (image("ftp://example.com/a.png"), "image_url.url"),
        (image("https://user:pass@example.com/a.png"), "image_url.url"),
        (image("https://"), "image_url.url"),
        (image("https://[::1/a.png"), "image_url.url"),
        (image("https://example.com:99999/"), "image_url.url"),
        (image("https://example.com/a b"), "image_url.url"),
        (image("https://example.com/" + "a" * 8_192), "image_url.url"),
        (image(""), "image_url.url"),
        (image(PICTURE, detail="original"), "image_url.detail"),
        (audio(b64(PNG), "wav"), "input_audio.data"),
        (audio(b64(UNKNOWN), "mp3"), "input_audio.data"),
        (audio(b64(WAV), "ogg"), "input_audio.format"),
        (audio("!", "pcm16"), "input_audio.data"),
        (file(), "file"),
        (file(file_data=b64(PDF), file_url="https://example.com/"), "file"),
        (file(file_data=b64(UNKNOWN)), "file.file_data"),
        (file(file_data=b64(ZIP), mime_type="application/zip"), "file.file_data"),
        (file(file_url="gopher://example.com/"), "file.file_url"),
        ({"type": "file"}, ""),
        ({"type": "file", "data": b64(UNKNOWN)}, "data"),
        ({"type": "video_url", "video_url": {"url": PICTURE}}, "type"),
    ],
)
def test_c11_what_is_no_media_is_refused_by_name(part: dict[str, Any], param: str) -> None:
    place = "messages[0].content[0]"
    assert refused(part).param == (f"{place}.{param}" if param else place)


@pytest.mark.parametrize("part", [file(file_id="file-1"), {"type": "file", "file_id": "file-1"}])
def test_c11_a_file_by_its_id_is_found_later(part: dict[str, Any]) -> None:
    request = parse(body(messages=[{"role": "user", "content": [part]}])).request
    [parsed] = request.messages[0].content
    assert isinstance(parsed, Document)
    assert isinstance(parsed.source, FileReference)
    assert parsed.source.id == "file-1"
    assert parsed.source.field.endswith("file_id")
    assert request.names_files


def test_c11_media_have_limits() -> None:
    parts = [image(PICTURE)] * (media.MEDIA_PARTS_MAX + 1)
    assert refusal(body(messages=[{"role": "user", "content": parts}])).param == (
        f"messages[0].content[{media.MEDIA_PARTS_MAX}]"
    )
    large = "A" * (media.MEDIA_BYTES_MAX // 3 * 4 + 8)
    assert "at most" in refused(file(file_data=large)).message


def test_c11_an_error_never_quotes_what_was_sent() -> None:
    assert "c2VjcmV0" not in refused(image("data:image/png;base64,c2VjcmV0AA==")).message


def test_c11_cache_marks_are_understood_on_parts_and_tools() -> None:
    mark, hour = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
    call = understood(
        prompt_cache_key="k",
        messages=[
            {"role": "system", "content": [{"type": "text", "text": "a", "cache_control": hour}]},
            {
                "role": "user",
                "content": [
                    {**image(PICTURE), "cache_control": mark},
                    {**file(file_data=b64(PDF)), "cache_control": mark},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "b", "cache_control": {}}]},
        ],
        tools=[WEATHER | {"cache_control": mark}],
    )
    system, user, assistant = call.request.messages
    assert system.content == (Text(text="a", cache=CacheMark(lifetime="1h")),)
    assert [getattr(part, "cache", None) for part in user.content] == [CacheMark(), CacheMark()]
    assert assistant.content == (Text(text="b", cache=CacheMark()),)
    assert call.request.tools[0].cache == CacheMark()
    assert call.request.prompt_cache_key == "k"
    assert call.ignored == ()


@pytest.mark.parametrize("format_", ["pcm16", "wav"])
def test_text_that_begins_as_an_address_again_and_again_is_not_searched(format_: str) -> None:
    started = time.process_time()
    text = "data:" * 400_000
    part = {"type": "input_audio", "input_audio": {"data": text, "format": format_}}
    with pytest.raises(RequestError, match="base64"):
        meant(part)
    # Minutes, if it is.
    assert time.process_time() - started < 1
