"""Files that requests name by their ids, in each format that has them.

Keeps C11, C70, C80.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateways import House, house
from tests.memory.files import ShelvedFiles, shelved
from tests.scripted import Scripted, answers, refuses
from tests.unit.engine.client_formats import exchange
from tests.unit.ingress.media_samples import MP3, PDF, PNG, b64, data_url
from tests.unit.routing.catalogs import endpoint, model
from tollgate.engine.files import media, named_files
from tollgate.providers.ports.base import UpstreamRefused

MODELS = {
    "acme/large": model(
        endpoint("near", "large-1"),
        endpoint("far", "L"),
        input=("text", "image", "audio", "pdf"),
        supports=("tools",),
        context=1_000_000,
    )
}
TYPES = {
    "report": ("application/pdf", PDF),
    "cat": ("image/png", PNG),
    "song": ("audio/mpeg", MP3),
    "table": ("text/csv", b"a,b\n1,2\n"),
    "flute": ("audio/flac", b"fLaC"),
    "drawing": ("image/svg+xml", b"<svg/>"),
}


async def keeping(files: ShelvedFiles | None = None, **sections: Any) -> House:
    """A house that keeps the files above, with a model that takes in everything."""
    home = await house(models=MODELS, **sections)
    home.gateway = replace(home.gateway, files=files or shelved("acme", **TYPES))
    return home


def files_of(home: House) -> ShelvedFiles:
    assert isinstance(home.gateway.files, ShelvedFiles)
    return home.gateway.files


def chat(*ids: str) -> tuple[str, dict[str, Any]]:
    parts = [{"type": "file", "file": {"file_id": each}} for each in ids]
    return "/v1/chat/completions", {"messages": [{"role": "user", "content": parts}]}


def flat(*ids: str) -> tuple[str, dict[str, Any]]:
    parts = [{"type": "file", "file_id": each} for each in ids]
    return "/v1/chat/completions", {"messages": [{"role": "user", "content": parts}]}


def responses(*ids: str, type_: str = "input_file") -> tuple[str, dict[str, Any]]:
    parts = [{"type": type_, "file_id": each} for each in ids]
    return "/v1/responses", {"input": [{"role": "user", "content": parts}]}


def messages(*ids: str, type_: str = "document") -> tuple[str, dict[str, Any]]:
    parts = [{"type": type_, "source": {"type": "file", "file_id": each}} for each in ids]
    return "/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": parts}]}


FORMATS = [chat, flat, responses, messages]
PLACES = {
    chat: "messages[0].content[0].file.file_id",
    flat: "messages[0].content[0].file_id",
    responses: "input[0].content[0].file_id",
    messages: "messages[0].content[0].source.file_id",
}


def sent(transport: Scripted) -> Any:
    return transport.requests[-1].body["messages"][0]["content"]


@pytest.mark.parametrize("asked", FORMATS)
async def test_c11_c80_a_file_reaches_a_provider_as_bytes(asked: Any) -> None:
    home = await keeping()
    path, body = asked("report", "cat")
    reply = await exchange(home, path, body)
    assert reply.status == 200, reply.body
    assert sent(home.near) == [
        {
            "type": "file",
            "file": {"filename": "report.bin", "file_data": data_url(PDF, "application/pdf")},
        },
        {"type": "image_url", "image_url": {"url": data_url(PNG, "image/png")}},
    ]
    assert home.record.outcome == "ok"


@pytest.mark.parametrize("asked", FORMATS)
@pytest.mark.parametrize("id_", ["unknown", "of_others", "../secrets", "file-" + "a" * 200])
async def test_c11_c70_an_id_of_no_file_of_the_workspace_is_named(asked: Any, id_: str) -> None:
    home = await keeping(shelved("other", of_others=("application/pdf", PDF)))
    path, body = asked(id_)
    reply = await exchange(home, path, body)
    assert reply.status == 400
    error = reply.json["error"]
    assert (error["code"], error["param"]) == ("file_not_found", PLACES[asked])
    assert home.near.requests == []
    assert home.stores.books.records == {}


async def test_c11_a_host_that_keeps_no_files_finds_none() -> None:
    home = await keeping()
    home.gateway = replace(home.gateway, files=None)
    reply = await exchange(home, *chat("report"))
    assert (reply.status, reply.json["error"]["code"]) == (400, "file_not_found")


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (*responses("table", type_="input_image"), "input[0].content[0].file_id"),
        (*messages("report", type_="image"), "messages[0].content[0].source.file_id"),
        (*messages("drawing", type_="image"), "messages[0].content[0].source.file_id"),
        (*messages("song", type_="image"), "messages[0].content[0].source.file_id"),
        (*chat("flute"), "messages[0].content[0].file.file_id"),
    ],
)
async def test_c11_c80_what_is_no_picture_is_refused_by_its_field(
    path: str, body: dict[str, Any], param: str
) -> None:
    home = await keeping()
    reply = await exchange(home, path, body)
    assert (reply.status, reply.json["error"]["param"]) == (400, param)
    assert home.stores.books.records == {}


@pytest.mark.parametrize(
    ("path", "body"), [responses("cat", type_="input_image"), messages("cat", type_="image")]
)
async def test_c80_a_picture_is_named_by_its_id(path: str, body: dict[str, Any]) -> None:
    home = await keeping()
    assert (await exchange(home, path, body)).status == 200
    assert sent(home.near)[0]["image_url"]["url"] == data_url(PNG, "image/png")


async def test_c11_a_recording_by_its_id_is_sound() -> None:
    home = await keeping()
    assert (await exchange(home, *chat("song"))).status == 200
    assert sent(home.near) == [
        {"type": "input_audio", "input_audio": {"data": b64(MP3), "format": "mp3"}}
    ]


async def test_c11_a_file_keeps_the_name_that_a_request_gives_it() -> None:
    home = await keeping()
    path, body = chat("report")
    body["messages"][0]["content"][0]["file"]["filename"] = "mine.pdf"
    assert (await exchange(home, path, body)).status == 200
    assert sent(home.near)[0]["file"]["filename"] == "mine.pdf"


async def test_c11_a_file_is_found_and_read_once_whatever_attempts_there_are() -> None:
    home = await keeping(near=Scripted(refuses(429)), far=Scripted(answers("Hi")))
    assert (await exchange(home, *chat("cat", "cat"))).status == 200
    assert len(home.far.requests) == 1
    files = files_of(home)
    assert (files.asked, files.read_places) == (["cat"], ["files/kept/cat"])


async def test_c62_a_file_is_measured_by_its_size_as_if_it_came_inline() -> None:
    large = b"a,b\n" * 20_000
    named = await keeping(shelved("acme", large=("text/csv", large)))
    assert (await exchange(named, *chat("large"))).status == 200
    inline = await keeping()
    path, body = chat()
    body["messages"][0]["content"] = [
        {"type": "file", "file": {"file_data": data_url(large, "text/csv")}}
    ]
    assert (await exchange(inline, path, body)).status == 200
    measured, expected = named.record.trace, inline.record.trace
    assert abs(measured.input_tokens_max - expected.input_tokens_max) < 50
    assert abs(measured.estimated_input_tokens - expected.estimated_input_tokens) < 5


async def test_c62_c65_a_large_pdf_is_likely_what_providers_read_of_one() -> None:
    home = await keeping()
    found = files_of(home).shelf["acme", "report"][0]
    vast = replace(found, size_bytes=media.TOTAL_BYTES_MAX)
    home.gateway = replace(home.gateway, files=ShelvedFiles({("acme", "report"): (vast, PDF)}))
    assert (await exchange(home, *chat("report"))).status == 200
    trace = home.record.trace
    assert 300_000 <= trace.estimated_input_tokens < 300_100
    assert trace.input_tokens_max > 27_000_000
    # A model's own context bounds what is held: a dollar for each million tokens.
    assert home.record.held_nano_usd < 1_100_000_000


async def test_c11_a_file_that_goes_while_it_is_needed_costs_nothing() -> None:
    home = await keeping()
    found = files_of(home).shelf["acme", "report"][0]

    class Vanishing(ShelvedFiles):
        async def read(self, place: str) -> bytes | None:
            return None

    gone = Vanishing({("acme", "report"): (found, PDF)})
    home.gateway = replace(home.gateway, files=gone)
    reply = await exchange(home, *chat("report"))
    assert (reply.status, reply.json["error"]["code"]) == (400, "file_not_found")
    assert reply.json["error"]["param"] == PLACES[chat]
    assert (home.record.outcome, home.record.cost_nano_usd) == ("error", 0)


async def test_c11_files_have_a_number_and_a_size() -> None:
    home = await keeping()
    many = [f"f{number}" for number in range(named_files.NAMED_FILES_MAX + 1)]
    reply = await exchange(home, *chat(*many))
    assert (reply.status, reply.json["error"]["param"]) == (400, "messages")
    assert files_of(home).asked == []
    half = media.TOTAL_BYTES_MAX // 2 + 1
    found = files_of(home).shelf["acme", "report"][0]
    vast = ShelvedFiles(
        {("acme", id_): (replace(found, size_bytes=half, place=id_), PDF) for id_ in ("one", "two")}
    )
    home.gateway = replace(home.gateway, files=vast)
    reply = await exchange(home, *chat("one", "two"))
    assert (reply.status, reply.json["error"]["param"]) == (400, "messages")
    assert vast.read_places == []
    assert home.record.cost_nano_usd == 0


async def test_c11_a_result_of_a_tool_has_files() -> None:
    home = await keeping()
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    source = {"type": "file", "file_id": "cat"}
    result = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "image", "source": source}],
    }
    body = {
        "max_tokens": 9,
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }
    assert (await exchange(home, "/v1/messages", body)).status == 200
    assert files_of(home).read_places == ["files/kept/cat"]


async def test_c80_tokens_of_a_prompt_with_files_are_counted() -> None:
    home = await keeping()
    path, body = messages("report")
    reply = await exchange(home, f"{path}/count_tokens", body)
    assert reply.status == 200
    unknown = await exchange(home, f"{path}/count_tokens", messages("nothing")[1])
    assert (unknown.status, unknown.json["error"]["code"]) == (400, "file_not_found")


async def test_c66_the_place_of_a_file_withholds_nothing_of_a_providers_words() -> None:
    words = "messages[0].content[0].file: files/kept has no pages"
    refusal = json.dumps({"error": {"message": words}}).encode()
    home = await keeping(near=Scripted([UpstreamRefused(400, {}, refusal)]))
    reply = await exchange(home, *chat("report"))
    assert reply.status == 400
    [attempt] = home.record.attempts
    assert "messages[0].content[0].file" in attempt.provider_words
