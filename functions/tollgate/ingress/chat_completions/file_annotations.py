"""Annotations that contain the documents read for an answer, in OpenRouter's form.

Clients send annotations back with the next request, so that no file is read twice:
https://openrouter.ai/docs/features/multimodal/pdfs (2026-11-22).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from tollgate.core.content import Image, InlineMedia, Text
from tollgate.core.documents.known_files import KnownFile, parse_pages, show_pages
from tollgate.core.json_value import JsonValue
from tollgate.ingress.chat_completions.media import parse_image
from tollgate.ingress.chat_completions.wire import messages as wire
from tollgate.ingress.shared.media import field_refusal


def render_files(files: Iterable[KnownFile]) -> Iterator[dict[str, JsonValue]]:
    """Yield an entry for `annotations` for each document."""
    for file in files:
        content: list[JsonValue] = [_render_part(part) for part in show_pages(file.pages)]
        yield {
            "type": "file",
            "file": {
                "hash": file.sha256,
                "name": file.name,
                "pages": file.pages_total,
                "content": content,
            },
        }


def _render_part(part: Text | Image) -> JsonValue:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(source=InlineMedia(media_type=type_, base64=encoded)):
            return {"type": "image_url", "image_url": {"url": f"data:{type_};base64,{encoded}"}}
        case _:
            raise ValueError("the image of a page must be inline bytes")


def parse_known_files(messages: Sequence[wire.Message]) -> tuple[tuple[KnownFile, ...], int]:
    """Return the documents in annotations of earlier answers, and their size in the body.

    Raises RequestError for an invalid image.
    """
    files: dict[str, KnownFile] = {}
    size_bytes = 0
    for n, message in enumerate(messages):
        if not isinstance(message, wire.AssistantMessage):
            continue
        for m, annotation in enumerate(message.annotations or ()):
            if annotation.file is not None:
                path = f"messages[{n}].annotations[{m}].file"
                files[annotation.file.hash] = _parse_file(annotation.file, path)
                size_bytes += sum(map(_size, annotation.file.content))
    return tuple(files.values()), size_bytes


def _parse_file(file: wire.ReturnedFile, path: str) -> KnownFile:
    pages = parse_pages(_parse_parts(file.content, f"{path}.content"))
    if not pages:
        raise field_refusal(f"{path}.content", "must have a page")
    return KnownFile(
        sha256=file.hash,
        name=file.name or "",
        pages=pages,
        pages_total=max(file.pages or 0, len(pages)),
    )


def _parse_parts(content: Sequence[wire.ReturnedPart], path: str) -> Iterator[Text | InlineMedia]:
    for n, part in enumerate(content):
        match part:
            case wire.ReturnedText(text=text):
                yield Text(text=text)
            case wire.ReturnedPicture(image_url=address):
                url_path = f"{path}[{n}].image_url.url"
                source = parse_image(address.url, url_path)
                if not isinstance(source, InlineMedia):
                    raise field_refusal(url_path, "must be a data: URL")
                yield source
            case _:
                assert_never(part)


def _size(part: wire.ReturnedPart) -> int:
    content = part.text if isinstance(part, wire.ReturnedText) else part.image_url.url
    return len(content.encode())
