"""Documents that an answer tells of: sent back, they are not read and not charged again.

Keeps C72.
"""

import json
from hashlib import sha256
from typing import Any

import pytest

from tests import documents
from tests.unit.engine.client_formats import exchange
from tests.unit.engine.test_read_documents import (
    REPORT,
    ask,
    body,
    lines,
    reader_of,
    reading,
    sent,
)


def told(reply: Any) -> list[dict[str, Any]]:
    """The annotations of a reply, whole or streamed."""
    if isinstance(reply.json, dict):
        return reply.json["choices"][0]["message"].get("annotations", [])
    raise AssertionError(reply.body)


def next_turn(name: str, content: bytes, annotations: Any, **fields: Any) -> dict[str, Any]:
    first = body(name, content, **fields)
    answer = {"role": "assistant", "content": "It is.", "annotations": annotations}
    asked = {"role": "user", "content": "And then?"}
    return {**first, "messages": [*first["messages"], answer, asked]}


async def test_annotations_with_page_numbers_spare_the_second_reading_and_its_fee() -> None:
    home = await reading()
    (annotation,) = told(await ask(home, "acme/seeing"))
    file = annotation["file"]
    assert annotation["type"] == "file"
    assert (file["hash"], file["name"]) == (sha256(REPORT).hexdigest(), "report.pdf")
    assert file["content"] == [
        {"type": "text", "text": "Page 1:\nProfits rose."},
        {"type": "text", "text": "Page 2:\nLosses fell."},
    ]
    first = lines(home)
    turn = next_turn("acme/seeing", REPORT, [annotation])
    reply = await exchange(home, "/v1/chat/completions", turn)
    assert reply.status == 200, reply.body
    assert len(reader_of(home).tasks) == 1
    assert "Page 2:\nLosses fell." in json.dumps(sent(home), ensure_ascii=False).replace(
        "\\n", "\n"
    )
    records = sorted(home.stores.books.records.values(), key=lambda it: it.created_s)
    assert sum(line.item == "pdf_page" for it in records for line in it.lines) == len(first)
    # What is told once is not told again: the caller has it.
    assert told(reply) == []
    assert "annotations" not in reply.headers.get("x-tollgate-adapted", "")


async def test_annotations_of_a_stream_come_before_its_end() -> None:
    home = await reading()
    reply = await ask(home, "acme/blind", stream=True)
    chunks = [
        json.loads(line.removeprefix("data: "))
        for line in reply.body.decode().split("\n\n")
        if line.startswith("data: {")
    ]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    (found,) = [delta["annotations"] for delta in deltas if "annotations" in delta]
    assert [(it["index"], it["type"], it["file"]["pages"]) for it in found] == [(0, "file", 2)]


async def test_a_scan_is_told_by_its_pictures() -> None:
    home = await reading()
    scan = documents.scan(1)
    (annotation,) = told(await ask(home, "acme/seeing", scan))
    kinds = [part["type"] for part in annotation["file"]["content"]]
    assert kinds == ["text", "image_url"]
    reply = await exchange(
        home, "/v1/chat/completions", next_turn("acme/seeing", scan, [annotation])
    )
    assert reply.status == 200
    assert [part["type"] for part in sent(home)].count("image_url") == 1
    assert len(reader_of(home).tasks) == 1


async def test_an_annotation_stands_for_a_file_with_its_hash_alone() -> None:
    home = await reading()
    (annotation,) = told(await ask(home, "acme/blind"))
    other = documents.pdf(["Another report."])
    reply = await exchange(
        home, "/v1/chat/completions", next_turn("acme/blind", other, [annotation])
    )
    assert reply.status == 200
    assert "Another report." in json.dumps(sent(home))
    assert "Profits" not in json.dumps(sent(home))
    assert len(reader_of(home).tasks) == 2


async def test_an_annotation_of_fewer_pages_than_are_wanted_now_spares_no_reading() -> None:
    home = await reading()
    one_page = [{"id": "pdf", "pages_max": 1}]
    (annotation,) = told(await ask(home, "acme/blind", plugins=one_page))
    assert (len(annotation["file"]["content"]), annotation["file"]["pages"]) == (1, 2)
    for plugins, reads, seen in ((one_page, 1, False), ([{"id": "pdf"}], 2, True)):
        turn = next_turn("acme/blind", REPORT, [annotation], plugins=plugins)
        reply = await exchange(home, "/v1/chat/completions", turn)
        assert reply.status == 200, reply.body
        assert len(reader_of(home).tasks) == reads
        assert ("Losses fell." in json.dumps(sent(home))) is seen


@pytest.mark.parametrize(
    "content",
    [
        [],
        [{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}],
        [{"type": "video"}],
    ],
)
async def test_an_annotation_that_tells_of_no_page_is_a_400(content: Any) -> None:
    home = await reading()
    file = {"hash": "a" * 64, "name": "x", "content": content}
    turn = next_turn("acme/blind", REPORT, [{"type": "file", "file": file}])
    reply = await exchange(home, "/v1/chat/completions", turn)
    assert reply.status == 400
    assert reply.json["error"]["param"].startswith("messages[1].annotations[0].file")


async def test_citations_that_come_back_have_no_effect() -> None:
    home = await reading()
    cited = {"type": "url_citation", "url_citation": {"url": "https://x.example", "title": ""}}
    reply = await exchange(home, "/v1/chat/completions", next_turn("acme/blind", REPORT, [cited]))
    assert reply.status == 200, reply.body
    assert len(reader_of(home).tasks) == 1
