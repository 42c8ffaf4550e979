"""What a path that is not served is told: why, and what to use in its place.

Keeps C41.
"""

import pytest

from tests.cells import cells
from tests.unit.web.test_api_app import api
from tollgate.ingress.formats import VIDEOS
from tollgate.web.http.paths import STREAMING_PATHS, no_route


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/nothing"), ("GET", "/x"), ("HEAD", "/x")]
)
async def test_c41_an_unknown_path_is_404_in_the_envelope(method: str, path: str) -> None:
    reply = await (await api())(method, path)
    assert reply.status == 404
    if method != "HEAD":
        assert reply.error["code"] == "not_found"
        assert ("base URL ends in /api/v1" in reply.error["message"]) == (path == "/x")


@pytest.mark.parametrize("prefix", ["/v1/v1", "/api/v1/v1", "/api/v1/api/v1"])
async def test_c41_a_path_with_two_versions_is_told_so(prefix: str) -> None:
    reply = await (await api())("POST", f"{prefix}/chat/completions", content={})
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    message = "the path has the version twice: remove /v1 from the client's base URL."
    assert reply.error["message"].endswith(message)


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.parametrize("path", ["/chat/completions", "/messages", "/messages/count_tokens"])
async def test_c41_a_path_without_a_version_says_where_to_add_it(prefix: str, path: str) -> None:
    reply = await (await api())("POST", f"{prefix}{path}", content={})
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert reply.error["message"] == f"There is no POST {path}; add /v1 to the client's base URL."


# Anthropic's clients add the version to their base URL.
@pytest.mark.parametrize("prefix", ["/v1/", "/api/v1/", "/v1//", "/api/v1/v1/"])
@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("images/variations", "the provider's own API"),
        ("audio/voices", "the provider's own API"),
    ],
)
async def test_c41_a_format_that_is_not_served_says_what_to_use(
    prefix: str, path: str, instead: str
) -> None:
    reply = await (await api())("POST", f"{prefix}{path}", content={})
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert instead in reply.error["message"]


async def test_c41_a_metered_post_that_came_astray_says_how_it_is_written() -> None:
    reply = await (await api())("POST", "/api/v1//chat/completions", content={})
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert reply.error["message"].startswith("POST /v1/chat/completions is served only")
    assert "without doubled or trailing slashes" in reply.error["message"]


@cells("method", ["GET", "DELETE", "HEAD", "OPTIONS", "PUT"])
@cells("path", sorted(STREAMING_PATHS - {VIDEOS.path}))
async def test_c41_another_method_of_a_streaming_path_is_told_its_methods(
    method: str, path: str
) -> None:
    served = await api()
    reply = await served(method, path, key=served.management)
    assert reply.status == (204 if method == "OPTIONS" else 405), reply.body
    assert reply.headers["allow"] == "OPTIONS, POST"


async def test_c41_a_path_of_both_functions_is_told_the_methods_of_both() -> None:
    served = await api()
    reply = await served("DELETE", VIDEOS.path, key=served.management)
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")


async def test_c41_a_count_that_came_astray_says_how_it_is_written() -> None:
    served = await api()
    reply = await served("POST", "/v1//responses/input_tokens", key=served.management, content={})
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert "without doubled or trailing slashes" in reply.error["message"]


@pytest.mark.parametrize("path", sorted(STREAMING_PATHS))
def test_c41_a_format_that_is_served_has_no_substitute(path: str) -> None:
    assert "lists all routes" in no_route("POST", path).message
