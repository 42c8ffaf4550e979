"""Scans for models that do not see: pages recognized by an engine over a socket, after the hold.

The engine's replies are synthetic, after Mistral's documentation (2026-11-22).

Keeps C72, C65.
"""

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from tests import documents
from tests.gateways import FUNDS_NANO_USD, House, house
from tests.memory.reader import InlineReader
from tests.scripted import Scripted, answers, refuses
from tests.scripted_tools import QUERY, ScriptedTools, asks
from tests.unit.engine.client_formats import exchange
from tests.unit.ingress.media_samples import data_url
from tests.unit.routing.catalogs import RECENTLY, endpoint, model
from tests.upstream import FakeUpstream, Script
from tollgate.core.clock import SystemClock
from tollgate.core.content import InlineMedia
from tollgate.core.documents.reading import DocumentPage
from tollgate.core.files.media_types import PDF
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.settings import Settings
from tollgate.stores.aws.secrets import AwsSecretStore
from tollgate.tools.io.engine_calls import PooledEngineCalls
from tollgate.tools.recognize import EngineRecognizer
from tollgate.wiring.aws import signer
from tollgate.wiring.generation import wire_gateway, wire_upstream
from tollgate.wiring.stores import wire_stores

KEY = "ocr-very-secret"
STATED = {"training": "none", "source": "made up", "checked": RECENTLY}
MODELS = {
    "acme/blind": model(
        endpoint("near", "blind-1"), input=("text",), context=100_000, supports=("tools",)
    ),
    "acme/seeing": model(endpoint("near", "see-1"), input=("text", "image"), context=100_000),
    "acme/reading": model(
        endpoint("near", "read-1"), input=("text", "image", "pdf"), context=100_000
    ),
    "acme/also": model(endpoint("far", "also-1"), input=("text",), context=100_000),
    "acme/careful": model(
        {**endpoint("near", "careful-1"), "prompt_use": STATED}, input=("text",), context=100_000
    ),
    "acme/eyes": model(endpoint("far", "eyes-1"), input=("text", "image"), context=100_000),
}
SCAN = documents.scan(2)
MIXED = documents.pdf(["Profits rose.", ""])


def recognized(*texts: str, first: int = 0) -> Script:
    pages = [
        {"index": first + place, "markdown": text, "images": [], "dimensions": None}
        for place, text in enumerate(texts)
    ]
    usage = {"pages_processed": len(texts), "doc_size_bytes": 1000}
    return Script.json(200, {"pages": pages, "model": "mistral-ocr-2512", "usage_info": usage})


async def scanning(
    server: FakeUpstream,
    pool: HttpPool,
    *,
    near: Scripted | None = None,
    key: str | None = KEY,
    funds_nano_usd: int = FUNDS_NANO_USD,
    **options: Any,
) -> House:
    ocr = {
        "engine": "mistral",
        "model": "mistral-ocr-2512",
        "base_url": server.url,
        "key": {"env": "OCR_API_KEY"},
        "price": {"page": Decimal("0.002"), "source": "made up", "checked": RECENTLY},
        **options,
    }
    if ocr["engine"] == "textract":
        ocr = {name: value for name, value in ocr.items() if name not in ("key", "model")}
    plugins = {"pdf": {"price": {"text": "0.0001", "images": "0.001"}, "ocr": ocr}}
    catalog = {"models": MODELS, "plugins": plugins, "aliases": {}, "routes": {}}
    home = await house(near=near, funds_nano_usd=funds_nano_usd, **catalog)
    section = home.catalog.pdf
    assert section is not None
    assert section.ocr is not None
    secrets = AwsSecretStore(None, {"OCR_API_KEY": key}.get, home.gateway.clock)
    recognizer = EngineRecognizer(
        section=section.ocr,
        calls=PooledEngineCalls(pool),
        secrets=secrets,
        region="eu-west-1",
        signer=lambda service, region: signer(Settings(), service, home.gateway.clock, region),
    )
    home.gateway = replace(home.gateway, reader=InlineReader(), recognizer=recognizer)
    return home


def body(name: str, content: bytes = SCAN, **fields: Any) -> dict[str, Any]:
    file = {"filename": "scan.pdf", "file_data": data_url(content, PDF)}
    parts = [{"type": "file", "file": file}, {"type": "text", "text": "Sum it up."}]
    messages = [{"role": "user", "content": parts}]
    return {"model": name, "messages": messages, "max_tokens": 9, **fields}


async def ask(home: House, *args: Any, **fields: Any) -> Any:
    return await exchange(home, "/v1/chat/completions", body(*args, **fields))


def sent(provider: Scripted) -> Any:
    return provider.requests[-1].body["messages"][0]["content"]


def lines(home: House) -> list[tuple[str, int, int]]:
    return [
        (line.item, line.quantity, line.cost_nano_usd)
        for line in home.record.lines
        if line.item.startswith("pdf_page")
    ]


async def test_c72_a_scan_is_recognized_for_a_model_that_does_not_see(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool)
    upstream.enqueue(recognized("# Invoice", "Total: 5 EUR"))
    reply = await ask(home, "acme/blind")
    assert reply.status == 200, reply.body
    assert sent(home.near)[0]["text"] == (
        "File scan.pdf, 2 pages:\n\nPage 1:\n# Invoice\n\nPage 2:\nTotal: 5 EUR\n"
    )
    assert lines(home) == [("pdf_page_ocr", 2, 4_000_000)]
    (received,) = upstream.received
    assert (received.method, received.path) == ("POST", "/v1/ocr")
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(received.body) == {
        "model": "mistral-ocr-2512",
        "document": {"type": "document_url", "document_url": data_url(SCAN, PDF)},
        "pages": [0, 1],
        "include_image_base64": False,
    }


async def test_c72_pages_with_text_are_not_recognized(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool)
    upstream.enqueue(recognized("Losses fell.", first=1))
    assert (await ask(home, "acme/blind", MIXED)).status == 200
    assert json.loads(upstream.received[0].body)["pages"] == [1]
    assert "Page 1:\nProfits rose.\n\nPage 2:\nLosses fell." in sent(home.near)[0]["text"]
    assert lines(home) == [("pdf_page", 1, 100_000), ("pdf_page_ocr", 1, 2_000_000)]


@pytest.mark.parametrize("name", ["acme/seeing", "acme/reading"])
async def test_a_model_that_sees_or_reads_gets_no_recognition(
    upstream: FakeUpstream, pool: HttpPool, name: str
) -> None:
    home = await scanning(upstream, pool)
    assert (await ask(home, name)).status == 200
    assert upstream.received == []
    assert lines(home) == ([("pdf_page", 2, 2_000_000)] if name == "acme/seeing" else [])


@pytest.mark.parametrize("name", ["acme/blind", "acme/seeing", "acme/reading"])
async def test_c72_the_engine_ocr_recognizes_every_page_for_any_model(
    upstream: FakeUpstream, pool: HttpPool, name: str
) -> None:
    home = await scanning(upstream, pool)
    upstream.enqueue(recognized("Profits **rose**.", "Losses."))
    reply = await ask(home, name, MIXED, plugins=[{"id": "pdf", "engine": "ocr"}])
    assert reply.status == 200, reply.body
    assert json.loads(upstream.received[0].body)["pages"] == [0, 1]
    assert [part["type"] for part in sent(home.near)] == ["text", "text"]
    assert "Page 1:\nProfits **rose**.\n" in sent(home.near)[0]["text"]
    assert lines(home) == [("pdf_page_ocr", 2, 4_000_000)]


async def test_c65_the_hold_has_the_pages_and_their_longest_text(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool, text_bytes_max=2_000)
    upstream.enqueue(recognized("é" * 5_000, "x" * 5_000))
    assert (await ask(home, "acme/blind")).status == 200
    text = sent(home.near)[0]["text"]
    assert text.count(" (cut)") == 2
    assert 2 * 1_900 < len(text.encode()) < 2 * 2_000 + 60
    record = home.record
    assert record.trace.documents is not None
    assert (record.trace.documents.pages, record.trace.documents.recognized) == (0, 2)
    # Two pages for their price, and 2,000 bytes of each at two bytes a token.
    assert record.trace.input_tokens_max >= 2_000
    bare = await scanning(upstream, pool, text_bytes_max=1_000)
    upstream.enqueue(recognized("a", "b"))
    assert (await ask(bare, "acme/blind")).status == 200
    tokens = record.trace.input_tokens_max - bare.record.trace.input_tokens_max
    assert tokens == 1_000
    assert record.held_nano_usd > bare.record.held_nano_usd > 4_000_000
    again = home.gateway.planner.plan(PlanningRequest.recorded(record.trace), now_s=0)
    assert again.cost_max_nano_usd == record.held_nano_usd


async def test_nothing_is_recognized_for_a_caller_without_credit(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool, funds_nano_usd=1_000)
    home.gateway = replace(home.gateway, admission="covered")
    reply = await ask(home, "acme/blind")
    assert (reply.status, reply.json["error"]["code"]) == (402, "insufficient_credits")
    assert upstream.received == []


async def test_two_attempts_are_one_recognition(upstream: FakeUpstream, pool: HttpPool) -> None:
    home = await scanning(upstream, pool, near=Scripted(refuses(500)))
    upstream.enqueue(recognized("One.", "Two."))
    reply = await ask(home, "acme/blind", models=["acme/also"])
    assert reply.status == 200, reply.body
    assert "Page 2:\nTwo." in sent(home.far)[0]["text"]
    assert len(upstream.received) == 1
    assert lines(home) == [("pdf_page_ocr", 2, 4_000_000)]


async def test_a_fallback_that_sees_gets_pictures_and_pays_for_these(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool, near=Scripted(refuses(500)))
    upstream.enqueue(recognized("One.", "Two."))
    assert (await ask(home, "acme/blind", models=["acme/eyes"])).status == 200
    assert [part["type"] for part in sent(home.far)].count("image_url") == 2
    assert lines(home) == [("pdf_page", 2, 2_000_000)]


async def test_a_required_parameter_does_not_recognize_for_a_model_that_does_not_serve(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool)
    reply = await ask(
        home, "acme/seeing", models=["acme/also"], provider={"require_parameters": True}
    )
    assert reply.status == 200, reply.body
    assert upstream.received == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "script",
    [
        Script.json(401, {"detail": f"bad key {KEY}"}),
        Script.json(429, {"detail": KEY}),
        Script.json(500, {"detail": KEY}),
        Script.json(200, {"pages": "none"}),
        recognized("Only one of two."),
        Script(before_headers="close"),
    ],
)
async def test_a_failure_of_the_engine_is_a_502_without_its_words_and_costs_nothing(
    upstream: FakeUpstream, pool: HttpPool, script: Script, *, stream: bool
) -> None:
    home = await scanning(upstream, pool)
    upstream.enqueue(script)
    reply = await ask(home, "acme/blind", models=["acme/also"], stream=stream)
    error = reply.json["error"]
    assert (reply.status, error["code"]) == (502, "provider_unavailable")
    assert error["message"].startswith("Scanned pages could not be recognized: the engine")
    assert KEY.encode() not in reply.body
    assert upstream.url.encode() not in reply.body
    # It is paid for, and no endpoint's fault: not sent again, and nothing rests for it.
    assert len(upstream.received) == 1
    assert (home.near.requests, home.far.requests) == ([], [])
    assert home.journal.rests == []
    assert (home.record.lines, home.spent_nano_usd) == ((), 0)


async def test_c65_a_caller_who_leaves_during_the_recognition_pays_nothing(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool)
    upstream.enqueue(Script(before_headers="hang"))
    asked = asyncio.create_task(ask(home, "acme/blind", stream=True))
    await upstream.requested()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert (home.record.lines, home.spent_nano_usd) == ((), 0)
    assert home.held_nano_usd == 0
    assert home.near.requests == []


async def test_an_engine_that_is_silent_ends_in_time(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool, timeout_s=1)
    upstream.enqueue(Script(before_headers="hang"))
    assert (await ask(home, "acme/blind")).status == 502


async def test_an_engine_without_its_key_is_asked_nothing(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool, key=None)
    reply = await ask(home, "acme/blind")
    assert (reply.status, reply.json["error"]["code"]) == (502, "provider_unavailable")
    assert upstream.received == []


async def test_more_pages_than_are_recognized_are_a_400_before_anything_is_held(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool, pages_max=1)
    reply = await ask(home, "acme/blind")
    error = reply.json["error"]
    assert (reply.status, error["code"]) == (400, "document_too_large")
    assert "2 pages have no text; the limit for OCR is 1" in error["message"]
    assert home.stores.books.records == {}
    # One that sees is left.
    assert (await ask(home, "acme/blind", models=["acme/eyes"])).status == 200
    assert upstream.received == []


async def test_c72_without_an_engine_ocr_is_refused_by_its_field(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool)
    home.gateway = replace(home.gateway, recognizer=None)
    reply = await ask(home, "acme/blind", plugins=[{"id": "pdf", "engine": "ocr"}])
    assert (reply.status, reply.json["error"]["param"]) == (400, "plugins[0].engine")
    reply = await ask(home, "acme/blind")
    assert (reply.status, reply.json["error"]["code"]) == (400, "document_unreadable")


async def test_c72_annotations_with_recognized_text_spare_the_second_recognition(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(upstream, pool)
    # A page of nothing is told of as such.
    upstream.enqueue(recognized("# Invoice", " "))
    first = await ask(home, "acme/blind")
    (annotation,) = first.json["choices"][0]["message"]["annotations"]
    assert annotation["file"]["content"] == [
        {"type": "text", "text": "Page 1:\n# Invoice"},
        {"type": "text", "text": "Page 2:\n(nothing was recognized)"},
    ]
    turn = body("acme/blind")
    answer = {"role": "assistant", "content": "It is.", "annotations": [annotation]}
    turn["messages"] += [answer, {"role": "user", "content": "And then?"}]
    reply = await exchange(home, "/v1/chat/completions", turn)
    assert reply.status == 200, reply.body
    assert len(upstream.received) == 1
    assert "# Invoice" in sent(home.near)[0]["text"]
    records = home.stores.books.records.values()
    assert sum(line.item == "pdf_page_ocr" for it in records for line in it.lines) == 1


async def test_pages_are_recognized_and_charged_once_in_a_request_of_rounds(
    upstream: FakeUpstream, pool: HttpPool
) -> None:
    home = await scanning(
        upstream, pool, near=Scripted(asks(("web_search", QUERY)), answers("Fine."))
    )
    home.gateway = replace(home.gateway, tools=ScriptedTools())
    upstream.enqueue(recognized("# Invoice", "Total"))
    reply = await ask(home, "acme/blind", plugins=[{"id": "web_search"}], max_tokens=100)
    assert reply.status == 200, reply.body
    assert len(upstream.received) == 1
    assert lines(home) == [("pdf_page_ocr", 2, 4_000_000)]
    assert all("# Invoice" in json.dumps(each.body) for each in home.near.requests)
    assert home.record.cost_nano_usd <= home.record.held_nano_usd


async def test_the_wired_gateway_recognizes_with_the_key_of_its_environment(
    upstream: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OCR_API_KEY", raising=False)
    settings, clock = Settings(), SystemClock()
    connections = wire_upstream(settings, clock)
    home = await scanning(upstream, connections.pool)
    gateway = wire_gateway(
        wire_stores(settings, clock),
        connections,
        home.catalog,
        clock=clock,
        journal=home.journal,
        reader=InlineReader(),
    )
    assert set(await connections.find_missing_tool_keys(home.catalog)) == {"pdf.ocr"}
    monkeypatch.setenv("OCR_API_KEY", KEY)
    assert await connections.find_missing_tool_keys(home.catalog) == {}
    upstream.enqueue(recognized("# Invoice"))
    assert gateway.recognizer is not None
    scan = InlineMedia(media_type=PDF, base64="JVBERi0=")
    page = DocumentPage(number=1, text="")
    assert await gateway.recognizer.recognize(scan, [page]) == {1: "# Invoice"}
    assert upstream.received[0].headers["authorization"] == f"Bearer {KEY}"
    await connections.aclose()
