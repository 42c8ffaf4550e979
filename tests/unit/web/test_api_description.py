"""What the api says of itself: its description, and the methods of a path.

Keeps C6, C41, C45.
"""

from typing import Any

import pytest

from tests.asgi import request
from tests.unit.web.routes import HOLD_ID, ROUTES
from tests.unit.web.served_api import LIMITS
from tests.unit.web.test_api_app import api
from tollgate.ingress.format_rows import IngressFormat
from tollgate.ingress.formats import FORMATS
from tollgate.web.api_app import api_app


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/models", "GET, HEAD, OPTIONS"),
        ("PUT", "/v1/keys/", "GET, HEAD, OPTIONS, POST"),
        ("PUT", "/api/v1/keys/Na1b2c3d4e5f6g7", "DELETE, GET, HEAD, OPTIONS, PATCH"),
        ("GET", "/v1/chat/completions", "OPTIONS, POST"),
    ],
)
async def test_c41_a_405_says_which_methods_there_are(method: str, path: str, allowed: str) -> None:
    reply = await (await api())(method, path)
    assert (reply.status, reply.headers["allow"]) == (405, allowed)


async def test_c6_a_description_that_was_built_is_served_as_it_is() -> None:
    built = api_app((await api()).services, LIMITS, openapi=b'{"openapi":"3.1.0"}')
    reply = await request(built, "GET", "/v1/openapi.json")
    assert (reply.status, reply.body) == (200, b'{"openapi":"3.1.0"}')
    assert reply.headers["content-type"] == "application/json"


async def test_c6_the_document_is_openapi_3_1_and_lists_every_route() -> None:
    document = (await (await api())("GET", "/v1/openapi.json")).json
    assert document["openapi"].startswith("3.1")
    routes = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    served = {(method, path.partition("?")[0]) for method, path, _ in ROUTES}
    names = {
        "/Na1b2c3d4e5f6g7": "/{key_id}",
        "/nowhere": "/{workspace_id}",
        "/resp_x": "/{response_id}",
        "/file-x": "/{file_id}",
        "/upload_x": "/{upload_id}",
        "/batch_x": "/{batch_id}",
        "/video_x": "/{video_id}",
        "/team-x": "/{team_id}",
        "/member-x": "/{member_id}",
        "/session-x": "/{session_id}",
        "/Nx1b2c3d4e5f6g7": "/{webhook_id}",
        "/evt_x": "/{event_id}",
        f"/{HOLD_ID}": "/{hold_id}",
    }
    for name, template in names.items():
        served = {(method, path.replace(name, template)) for method, path in served}
    assert routes == served | {
        ("POST", "/v1/session"),
        ("GET", "/v1/session"),
        ("DELETE", "/v1/session"),
        ("DELETE", "/v1/playground"),
        ("POST", "/v1/v2/rerank"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/messages"),
        ("POST", "/v1/messages/count_tokens"),
        ("POST", "/v1/responses"),
        ("POST", "/v1/responses/compact"),
        ("POST", "/v1/responses/input_tokens"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/rerank"),
        ("POST", "/v1/moderations"),
        ("POST", "/v1/decisions"),
        ("POST", "/v1/images/generations"),
        ("POST", "/v1/images/edits"),
        ("POST", "/v1/videos"),
        ("POST", "/v1/audio/speech"),
        ("POST", "/v1/audio/transcriptions"),
        ("POST", "/v1/audio/translations"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/{name}"),
        ("GET", "/v1/models/{author}/{slug}/endpoints"),
        ("GET", "/v1/health/live"),
        ("GET", "/v1/health/ready"),
    }


# The definitions of a schema, and the names that a union has for its members.
_OF_NAMES = ("$defs", "mapping")


def resolved(schema: Any, schemas: dict[str, Any], within: tuple[str, ...] = ()) -> Any:
    """A schema with what it refers to in place of names, as deep as it does not repeat itself."""
    if isinstance(schema, list):
        return [resolved(each, schemas, within) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" not in schema:
        named = {name: each for name, each in schema.items() if name not in _OF_NAMES}
        return {name: resolved(each, schemas, within) for name, each in named.items()}
    name = schema["$ref"].rpartition("/")[2]
    title = schemas[name].get("title", name)
    return title if name in within else resolved(schemas[name], schemas, (*within, name))


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
async def test_c6_every_format_is_described_by_its_own_models(row: IngressFormat) -> None:
    document = (await (await api())("GET", "/v1/openapi.json")).json
    schemas = document["components"]["schemas"]
    body = document["paths"][row.path]["post"]["requestBody"]["content"]["application/json"]
    own = row.models.request().model_json_schema()
    assert resolved(body["schema"], schemas) == resolved(own, own["$defs"])
    content = document["paths"][row.path]["post"]["responses"]["200"]["content"]
    models = row.models
    types = {"text/event-stream": models.event, "application/json": models.reply}
    others = models.media_types().values() if models.media_types else ()
    assert content.keys() == {name for name, it in types.items() if it} | {*others}
    if models.reply is not None:
        reply = models.reply().model_json_schema(mode="serialization")
        assert resolved(content["application/json"]["schema"], schemas) == resolved(
            reply, reply["$defs"]
        )


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("/v1/images/edits", {"image": True, "mask": False}),
        ("/v1/audio/transcriptions", {"file": False}),
        ("/v1/audio/translations", {"file": False}),
    ],
)
async def test_c6_a_form_has_bytes_as_its_files(path: str, files: dict[str, bool]) -> None:
    """A generated client sends anything else as a text of the form, without its content."""
    document = (await (await api())("GET", "/v1/openapi.json")).json
    content = document["paths"][path]["post"]["requestBody"]["content"]
    form = resolved(content["multipart/form-data"]["schema"], document["components"]["schemas"])
    for name, several in files.items():
        described = form["properties"][name]
        described = described["items"] if several else described["anyOf"][0]
        assert described == {"type": "string", "format": "binary"}
    in_json = resolved(content["application/json"]["schema"], document["components"]["schemas"])
    assert "binary" not in str(in_json)


async def test_c6_subtitles_are_text_and_sounds_are_bytes() -> None:
    paths = (await (await api())("GET", "/v1/openapi.json")).json["paths"]
    replies = paths["/v1/audio/transcriptions"]["post"]["responses"]["200"]["content"]
    assert replies["text/vtt; charset=utf-8"]["schema"] == {"type": "string"}
    sounds = paths["/v1/audio/speech"]["post"]["responses"]["200"]["content"]
    assert sounds["audio/wav"]["schema"] == {"type": "string", "format": "binary"}


@pytest.mark.parametrize("origin", [None, "https://app.example"])
async def test_c45_options_that_is_no_preflight_says_what_is_served(origin: str | None) -> None:
    headers = {} if origin is None else {"origin": origin}
    reply = await (await api())("OPTIONS", "/v1/keys", headers=headers)
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert reply.headers.get("access-control-allow-origin") == origin
    unknown = await (await api())("OPTIONS", "/v1/nothing", headers=headers)
    assert (unknown.status, unknown.error["code"]) == (404, "not_found")
