"""Scans that Amazon Textract recognizes: pictures of pages, in requests that the role signs.

Keeps C72, C65.
"""

import json

from tests.functional.test_recognition import ask, lines, scanning, sent
from tests.upstream import FakeUpstream, Script
from tollgate.providers.transports.http_pool import HttpPool

TEXTRACT = {"engine": "textract"}


def detected(*lines: str) -> Script:
    """A reply after Amazon Textract's documentation (2026-11-22): a page, lines and words."""
    page = {"BlockType": "PAGE", "Id": "1", "Page": 1}
    blocks = [{"BlockType": "LINE", "Text": line, "Confidence": 99.1, "Page": 1} for line in lines]
    words = [{"BlockType": "WORD", "Text": "word", "TextType": "PRINTED"}]
    reply = {"DocumentMetadata": {"Pages": 1}, "Blocks": [page, *blocks, *words]}
    return Script.json(200, reply)


async def test_c72_textract_gets_a_picture_of_each_page_signed_by_the_role(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool, region="eu-central-1", **TEXTRACT)
    upstream.enqueue(detected("Invoice", "Total: 5 EUR"), detected("Invoice", "Total: 5 EUR"))
    reply = await ask(home, "acme/blind")
    assert reply.status == 200, reply.body
    page = "Invoice\nTotal: 5 EUR\n"
    assert (
        sent(home.near)[0]["text"] == f"File scan.pdf, 2 pages:\n\nPage 1:\n{page}\nPage 2:\n{page}"
    )
    assert lines(home) == [("pdf_page_ocr", 2, 4_000_000)]
    assert [received.path for received in upstream.received] == ["/", "/"]
    for received in upstream.received:
        assert received.headers["x-amz-target"] == "Textract.DetectDocumentText"
        assert received.headers["content-type"] == "application/x-amz-json-1.1"
        assert "/eu-central-1/textract/aws4_request" in received.headers["authorization"]
        assert json.loads(received.body)["Document"]["Bytes"].startswith("iVBORw0KGgo")


async def test_c72_a_model_that_sees_gets_pictures_and_textract_nothing(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool, **TEXTRACT)
    assert (await ask(home, "acme/seeing")).status == 200
    assert upstream.received == []
    upstream.enqueue(detected("Invoice"), detected("Invoice"))
    plugins = [{"id": "pdf", "engine": "ocr"}]
    reply = await ask(home, "acme/seeing", plugins=plugins)
    assert reply.status == 200, reply.body
    assert len(upstream.received) == 2
    assert "Invoice" in json.dumps(sent(home.near))


async def test_c72_one_page_that_textract_refuses_fails_the_request_and_costs_nothing(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool, **TEXTRACT)
    refused = Script.json(400, {"__type": "UnsupportedDocumentException", "message": "secret"})
    upstream.enqueue(detected("Invoice"), refused)
    reply = await ask(home, "acme/blind")
    assert reply.status == 502
    assert b"secret" not in reply.body
    assert home.record.cost_nano_usd == 0
