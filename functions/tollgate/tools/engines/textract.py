"""Amazon Textract's OCR for images of pages.

https://docs.aws.amazon.com/textract/latest/dg/API_DetectDocumentText.html (2026-11-22): an image of
one page as Base64 in `Document.Bytes`; `Blocks` of type LINE contain the text from top to bottom.
Each page is sent in its own request, because the call for whole files is asynchronous and needs a
bucket.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from tollgate.tools.engines.codec import (
    EngineAccess,
    RecognitionCodec,
    Scan,
    post_json,
    read_engine_reply,
)
from tollgate.tools.ports.base import EngineRequest, RunFailure

_HEADERS: Final = {
    "content-type": "application/x-amz-json-1.1",
    "x-amz-target": "Textract.DetectDocumentText",
}
_LINE: Final = "LINE"


class _Block(Struct, frozen=True, kw_only=True, rename="pascal"):
    block_type: str
    text: str = ""


class _Reply(Struct, frozen=True, kw_only=True, rename="pascal"):
    blocks: tuple[_Block, ...]


def _encode(scan: Scan, access: EngineAccess) -> tuple[EngineRequest, ...]:
    """Return a request for each page; raise RunFailure for a page without an image."""
    if missing := set(scan.pages) - scan.pictures.keys():
        raise RunFailure("unavailable", f"{len(missing)} pages have no picture")
    return tuple(
        post_json(
            f"{access.base_url}/", {"Document": {"Bytes": scan.pictures[page].base64}}, _HEADERS
        )
        for page in scan.pages
    )


def _decode(bodies: Sequence[bytes], scan: Scan) -> Mapping[int, str]:
    """Return the text of each page, by page number."""
    return {
        page: "\n".join(
            block.text
            for block in read_engine_reply(body, _Reply).blocks
            if block.block_type == _LINE
        )
        for page, body in zip(scan.pages, bodies, strict=True)
    }


TEXTRACT: Final = RecognitionCodec(encode=_encode, decode=_decode)
