"""Mistral's OCR for documents.

https://docs.mistral.ai/api/endpoint/ocr, and OCRRequest and OCRPageObject in the reference of the
vendor's client (github.com/mistralai/client-python, docs/models; 2026-11-22): `POST /v1/ocr`, a
bearer token, a document as a `data:` URL, `pages` counted from 0. A reply contains the `markdown`
and the `index` of each page, also counted from 0.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from tollgate.tools.engines.codec import (
    EngineAccess,
    RecognitionCodec,
    Scan,
    bearer,
    post_json,
    read_engine_reply,
)
from tollgate.tools.ports.base import EngineRequest


class _Page(Struct, frozen=True, kw_only=True):
    index: int
    markdown: str


class _Reply(Struct, frozen=True, kw_only=True):
    pages: tuple[_Page, ...]


def _encode(scan: Scan, access: EngineAccess) -> tuple[EngineRequest, ...]:
    """Return the only request for a document."""
    content = scan.document
    request = post_json(
        f"{access.base_url}/v1/ocr",
        {
            "model": scan.model,
            "document": {
                "type": "document_url",
                "document_url": f"data:{content.media_type};base64,{content.base64}",
            },
            "pages": [page - 1 for page in scan.pages],
            "include_image_base64": False,
        },
        bearer(access.key),
    )
    return (request,)


def _decode(bodies: Sequence[bytes], scan: Scan) -> Mapping[int, str]:
    """Return the text of each page in the reply, by page number from 1."""
    (body,) = bodies
    return {page.index + 1: page.markdown for page in read_engine_reply(body, _Reply).pages}


MISTRAL_OCR: Final = RecognitionCodec(encode=_encode, decode=_decode)
