"""Documents of requests whose model does not read them: text, pictures, limits and their fees.

Keeps C72, C65.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests import documents
from tests.gateways import House, house
from tests.memory.reader import InlineReader
from tests.scripted import Scripted, answers, refuses
from tests.scripted_tools import QUERY, ScriptedTools, asks
from tests.unit.engine.client_formats import exchange
from tests.unit.ingress.media_samples import data_url
from tests.unit.routing.catalogs import endpoint, model
from tollgate.core.buffer_budget import ProcessBuffers
from tollgate.core.documents.reading import (
    DocumentFault,
    DocumentOptions,
    ReaderUnavailable,
    UnreadableDocument,
)
from tollgate.core.errors import ErrorCode
from tollgate.core.files.media_types import DOCX, PDF, XLSX
from tollgate.engine.generate import generate, planning_request
from tollgate.routing.planning.planning_request import PlanningRequest

PLUGINS = {"pdf": {"pages_max": 20, "price": {"text": "0.0001", "images": "0.001"}}}
REPORT = documents.pdf(["Profits rose.", "Losses fell."])
MODELS = {
    "acme/blind": model(endpoint("near", "blind-1"), input=("text",), context=1_000_000),
    "acme/seeing": model(endpoint("near", "see-1"), input=("text", "image"), context=1_000_000),
    "acme/reading": model(
        endpoint("near", "read-1"), input=("text", "image", "pdf"), context=1_000_000
    ),
    "acme/small": model(endpoint("near", "small-1"), input=("text",), context=2_000),
    "acme/far": model(endpoint("far", "far-1"), input=("text", "image", "pdf"), context=1_000_000),
}


async def reading(
    reader: InlineReader | None = None, *, near: Scripted | None = None, **sections: Any
) -> House:
    stated = {"models": MODELS, "plugins": PLUGINS, "aliases": {}, "routes": {}}
    home = await house(near=near, **{**stated, **sections})
    home.gateway = replace(home.gateway, reader=reader or InlineReader())
    return home


def reader_of(home: House) -> InlineReader:
    assert isinstance(home.gateway.reader, InlineReader)
    return home.gateway.reader


def body(name: str, *contents: bytes, type_: str = PDF, **fields: Any) -> dict[str, Any]:
    parts = [
        {"type": "file", "file": {"filename": "report.pdf", "file_data": data_url(each, type_)}}
        for each in contents or (REPORT,)
    ]
    messages = [{"role": "user", "content": [*parts, {"type": "text", "text": "Sum it up."}]}]
    return {"model": name, "messages": messages, "max_tokens": 9, **fields}


async def ask(home: House, *args: Any, **fields: Any) -> Any:
    return await exchange(home, "/v1/chat/completions", body(*args, **fields))


def sent(home: House) -> Any:
    return home.near.requests[-1].body["messages"][0]["content"]


def lines(home: House) -> list[tuple[str, int, int]]:
    return [
        (line.item, line.quantity, line.cost_nano_usd)
        for line in home.record.lines
        if line.item == "pdf_page"
    ]


async def test_c72_a_model_that_does_not_see_gets_text() -> None:
    home = await reading()
    reply = await ask(home, "acme/blind")
    assert reply.status == 200, reply.body
    assert sent(home) == [
        {
            "type": "text",
            "text": "File report.pdf, 2 pages:\n"
            "\nPage 1:\nProfits rose.\n"
            "\nPage 2:\nLosses fell.\n",
        },
        {"type": "text", "text": "Sum it up."},
    ]
    assert lines(home) == [("pdf_page", 2, 200_000)]
    assert reader_of(home).tasks[0].pictures == "none"


async def test_c72_a_model_that_sees_gets_text_and_pictures() -> None:
    home = await reading()
    reply = await ask(home, "acme/seeing")
    assert reply.status == 200, reply.body
    kinds = [part["type"] for part in sent(home)]
    assert kinds == ["text", "image_url", "text", "image_url", "text"]
    assert sent(home)[2]["text"] == "\nPage 2:\nLosses fell.\n"
    assert sent(home)[1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert lines(home) == [("pdf_page", 2, 2_000_000)]


async def test_c72_a_model_that_reads_pdf_gets_it_as_it_is_for_no_fee() -> None:
    home = await reading()
    reply = await ask(home, "acme/reading")
    assert reply.status == 200
    assert sent(home)[0]["file"]["file_data"] == data_url(REPORT, PDF)
    assert lines(home) == []
    assert reader_of(home).tasks == []


async def test_without_the_section_a_model_that_reads_none_is_left_out() -> None:
    home = await reading(plugins=None)
    reply = await ask(home, "acme/blind")
    assert (reply.status, reply.json["error"]["code"]) == (400, "file_not_supported_by_model")
    assert reader_of(home).tasks == []


async def test_a_fallback_that_reads_pdf_gets_it_and_costs_no_page() -> None:
    home = await reading(near=Scripted(refuses(500)))
    reply = await ask(home, "acme/blind", models=["acme/far"])
    assert reply.status == 200, reply.body
    content = home.far.requests[-1].body["messages"][0]["content"]
    assert content[0]["file"]["file_data"] == data_url(REPORT, PDF)
    assert lines(home) == []


@pytest.mark.parametrize("type_", [DOCX, "text/csv"])
async def test_other_files_become_text_for_no_fee(type_: str) -> None:
    home = await reading()
    content = documents.word() if type_ == DOCX else b"plan,price\nsmall,5\n"
    for name in ("acme/blind", "acme/seeing"):
        reply = await ask(home, name, content, type_=type_)
        assert reply.status == 200, reply.body
        assert ("All is well." if type_ == DOCX else "small,5") in sent(home)[0]["text"]
    assert not any(
        line.item == "pdf_page" for it in home.stores.books.records.values() for line in it.lines
    )


async def test_a_format_without_room_for_a_type_gets_text_though_its_model_reads_pdf() -> None:
    home = await reading()
    reply = await ask(home, "acme/reading", documents.word(), type_=DOCX)
    assert reply.status == 200
    assert "All is well." in sent(home)[0]["text"]


async def test_a_scan_is_shown_to_a_model_that_sees_and_refused_for_one_that_does_not() -> None:
    home = await reading(plugins={"pdf": {"engine": "text", "price": {"images": "0.001"}}})
    reply = await ask(home, "acme/seeing", documents.scan(2))
    assert reply.status == 200
    assert [part["type"] for part in sent(home)].count("image_url") == 2
    assert lines(home) == [("pdf_page", 2, 2_000_000)]
    refused = await ask(home, "acme/blind", documents.scan(1))
    assert (refused.status, refused.json["error"]["code"]) == (400, "document_unreadable")


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (documents.encrypted_pdf(), "document_unreadable", "report.pdf is protected by a password"),
        (b"%PDF-1.7", "document_unreadable", "report.pdf is incomplete"),
        (
            documents.pdf(["p"] * 21),
            "document_too_large",
            "report.pdf has 21 pages; the limit is 20",
        ),
    ],
)
async def test_a_document_that_cannot_be_read_is_a_400_before_anything_is_held(
    content: bytes, code: str, words: str
) -> None:
    home = await reading()
    reply = await ask(home, "acme/blind", content)
    error = reply.json["error"]
    assert (reply.status, error["code"], error["param"]) == (400, code, "messages")
    assert words in error["message"]
    assert home.stores.books.records == {}
    assert home.near.requests == []


@pytest.mark.parametrize("fault", DocumentFault)
async def test_every_fault_of_a_reader_is_a_400(fault: DocumentFault) -> None:
    home = await reading(InlineReader(UnreadableDocument(fault, amount=3, most=2)))
    reply = await ask(home, "acme/blind")
    assert reply.status == 400
    assert "{" not in reply.json["error"]["message"]


async def test_a_reader_that_is_away_is_a_503() -> None:
    home = await reading(InlineReader(ReaderUnavailable("away")))
    reply = await ask(home, "acme/blind")
    assert (reply.status, reply.json["error"]["code"]) == (503, "service_unavailable")
    assert "retry-after" in reply.headers


async def test_c47_pages_that_a_request_may_not_hold_are_refused() -> None:
    home = await reading()
    buffers = ProcessBuffers(request_bytes_max=10)
    home.gateway = replace(home.gateway, buffers=buffers)
    reply = await ask(home, "acme/blind")
    assert (reply.status, reply.json["error"]["code"]) == (400, "invalid_request")
    assert (len(reader_of(home).tasks), buffers.size) == (1, 0)


async def test_too_many_documents_are_refused() -> None:
    home = await reading()
    many = [documents.pdf([str(number)]) for number in range(17)]
    reply = await ask(home, "acme/blind", *many)
    assert (reply.status, reply.json["error"]["code"]) == (400, "document_too_large")
    assert reader_of(home).tasks == []


async def test_a_document_that_comes_twice_is_read_once() -> None:
    home = await reading()
    assert (await ask(home, "acme/blind", REPORT, REPORT)).status == 200
    assert len(reader_of(home).tasks) == 1
    assert [part["text"][:15] for part in sent(home)[:2]] == ["File report.pdf"] * 2
    assert lines(home) == [("pdf_page", 2, 200_000)]


async def test_text_that_was_read_counts_against_a_models_context() -> None:
    home = await reading()
    long = documents.pdf(["\n".join(["many words that fill this page up"] * 40)] * 12)
    reply = await ask(home, "acme/small", long)
    assert (reply.status, reply.json["error"]["code"]) == (400, "context_length_exceeded")


async def test_the_hold_covers_pages_and_their_text() -> None:
    home = await reading()
    assert (await ask(home, "acme/seeing")).status == 200
    with_pages = home.record.held_nano_usd
    assert with_pages >= home.record.cost_nano_usd
    free = await reading(plugins={"pdf": {"price": {}}})
    assert (await ask(free, "acme/seeing")).status == 200
    assert with_pages - free.record.held_nano_usd == 2_000_001
    trace = home.record.trace
    assert trace.documents is not None
    assert (trace.documents.types, trace.documents.pages) == ((PDF,), 2)


async def test_c66_the_hold_covers_text_that_was_packed() -> None:
    home = await reading()
    packed = documents.workbook([("the same words " * 20,)] * 300)
    assert (await ask(home, "acme/blind", packed, type_=XLSX)).status == 200
    unpacked_bytes = 300 * 20 * len("the same words ")
    assert len(packed) < unpacked_bytes // 4
    # A token has two bytes at least.
    assert home.record.trace.input_tokens_max >= unpacked_bytes // 2
    assert home.record.trace.estimated_input_tokens >= unpacked_bytes // 4


async def test_a_caller_cannot_raise_the_number_of_pages() -> None:
    home = await reading()
    long = documents.pdf(["A page."] * 21)
    reply = await ask(home, "acme/blind", long, plugins=[{"id": "pdf", "pages_max": 100}])
    assert (reply.status, reply.json["error"]["code"]) == (400, "document_too_large")


async def test_a_failure_costs_no_page() -> None:
    home = await reading(near=Scripted(refuses(500)))
    reply = await ask(home, "acme/blind")
    assert reply.status == 502
    assert (home.record.lines, home.spent_nano_usd) == ((), 0)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_plan_of_the_record_is_that_of_the_request(streamed: bool) -> None:
    home = await reading()
    assert (await ask(home, "acme/blind", stream=streamed)).status == 200
    again = home.gateway.planner.plan(PlanningRequest.recorded(home.record.trace), now_s=0)
    assert again.cost_max_nano_usd == home.record.held_nano_usd


async def test_options_of_the_caller_choose_engine_and_pages() -> None:
    home = await reading()
    call = home.call("acme/seeing")
    parsed = home.ingress.parse(_raw("acme/seeing"))

    async def generate_with(options: DocumentOptions) -> Any:
        asked = replace(parsed, request=replace(parsed.request, documents=options))
        reply = home.reply()
        made = replace(call, parsed=asked, request_id=home.gateway.ids.new_id())
        await generate(home.gateway, made, home.sink(made, reply))
        return sent(home)

    content = await generate_with(DocumentOptions(pages_max=1))
    assert content[0]["text"].startswith("File report.pdf, 2 pages, of which 1 follow:\n\nPage 1")
    assert [part["type"] for part in content] == ["text", "image_url", "text"]
    content = await generate_with(DocumentOptions(engine="text"))
    assert [part["type"] for part in content] == ["text", "text"]


async def test_an_engine_that_the_caller_names_reads_for_a_model_that_reads_pdf() -> None:
    home = await reading()
    for engine, kind in (("text", "text"), ("native", "file")):
        parsed = home.ingress.parse(_raw("acme/reading"))
        asked = replace(
            parsed, request=replace(parsed.request, documents=DocumentOptions(engine=engine))
        )
        call = replace(
            home.call("acme/reading"), parsed=asked, request_id=home.gateway.ids.new_id()
        )
        await generate(home.gateway, call, home.sink(call, home.reply()))
        assert sent(home)[0]["type"] == kind


def _raw(name: str) -> bytes:
    return json.dumps(body(name)).encode()


async def test_native_leaves_out_models_that_do_not_read() -> None:
    home = await reading()
    parsed = home.ingress.parse(_raw("acme/blind"))
    request = replace(parsed.request, documents=DocumentOptions(engine="native"))
    call = replace(home.call("acme/blind"), parsed=replace(parsed, request=request))
    survey = home.gateway.planner.survey(planning_request(call), now_s=0)
    assert survey.refusal is not None
    assert survey.refusal.code is ErrorCode.FILE_NOT_SUPPORTED


async def test_a_survey_says_for_whom_documents_are_read() -> None:
    home = await reading()
    parsed = home.ingress.parse(_raw("acme/blind"))
    request = replace(
        parsed.request, preferences=replace(parsed.request.preferences, models=("acme/far",))
    )
    call = replace(home.call("acme/blind"), parsed=replace(parsed, request=request))
    survey = home.gateway.planner.survey(planning_request(call), now_s=0)
    assert [each.reads for each in survey.candidates] == [True, False]


async def test_c72_c73_pages_are_charged_once_in_a_request_of_rounds() -> None:
    searching = asks(("web_search", QUERY))
    blind = {**MODELS["acme/blind"], "supports": ("tools",)}
    home = await reading(near=Scripted(searching, answers("Fine.")), models={"acme/blind": blind})
    home.gateway = replace(home.gateway, tools=ScriptedTools())

    reply = await ask(home, "acme/blind", plugins=[{"id": "web_search"}], max_tokens=100)

    assert reply.status == 200, reply.body
    assert [(line.item, line.round) for line in home.record.lines] == [
        ("input", 1),
        ("output", 1),
        ("pdf_page", 1),
        ("web_search", 1),
        ("input", 2),
        ("output", 2),
    ]
    # Both prompts have its text.
    first, second = (each.body["messages"][0] for each in home.near.requests)
    assert first == second
    assert "Profits rose." in json.dumps(first)
    assert home.record.cost_nano_usd <= home.record.held_nano_usd


@pytest.mark.parametrize(("engine", "kind"), [("text", "text"), ("native", "file")])
async def test_c72_the_plugin_says_who_reads(engine: str, kind: str) -> None:
    home = await reading()
    plugins = [{"id": "pdf", "engine": engine, "pages_max": 1}]
    reply = await ask(home, "acme/reading", plugins=plugins)
    assert reply.status == 200, reply.body
    assert sent(home)[0]["type"] == kind
    assert lines(home) == ([("pdf_page", 1, 100_000)] if kind == "text" else [])


async def test_c72_a_reading_that_nothing_does_is_refused_by_its_field() -> None:
    home = await reading(plugins={})
    reply = await ask(home, "acme/reading", plugins=[{"id": "pdf", "engine": "text"}])
    assert (reply.status, reply.json["error"]["param"]) == (400, "plugins[0].engine")
    assert (await ask(home, "acme/reading", plugins=[{"id": "pdf"}])).status == 200
