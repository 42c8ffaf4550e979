"""Requests to search engines and their replies, by the documented shape of each.

The replies are made by hand after each engine's documentation; none was recorded.
"""

from typing import Any, get_args
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from tests.cells import cells
from tollgate.core.addresses import DomainRules
from tollgate.core.server_tools import Source, UserLocation
from tollgate.routing.tool_sections import ENGINE_HOSTS, SearchEngine
from tollgate.tools.engines.codec import EngineAccess, Search
from tollgate.tools.ports.base import EngineRequest, RunFailure
from tollgate.tools.search import ENGINES

KEY = "secret-key"
SEARCH = Search(
    query="who won",
    results_max=3,
    domains=DomainRules(allowed=("a.example", "b.example"), blocked=("bad.a.example",)),
    location=UserLocation(city="Berlin", country="de"),
)
PAGE = Source(url="https://a.example/1", title="One", text="First.", published="2026-11-01")
# Hand-made after the documentation of each engine, 2026-11-22.
REPLIES: dict[SearchEngine, dict[str, Any]] = {
    "tavily": {
        "query": "who won",
        "results": [
            {
                "title": "One",
                "url": "https://a.example/1",
                "content": "First.",
                "score": 0.98,
                "raw_content": None,
                "published_date": "2026-11-01",
            }
        ],
        "response_time": 1.2,
        "request_id": "123e4567",
    },
    "brave": {
        "type": "search",
        "query": {"original": "who won", "more_results_available": True},
        "web": {
            "type": "search",
            "results": [
                {
                    "title": "<strong>One</strong>",
                    "url": "https://a.example/1",
                    "description": "<strong>First</strong>.",
                    "page_age": "2026-11-01",
                    "profile": {"name": "A"},
                }
            ],
        },
    },
    "exa": {
        "requestId": "b594",
        "results": [
            {
                "title": "One",
                "url": "https://a.example/1",
                "publishedDate": "2026-11-01",
                "author": None,
                "id": "https://a.example/1",
                "highlights": ["First."],
            }
        ],
        "costDollars": {"total": 0.005},
    },
    "firecrawl": {
        "success": True,
        "data": {
            "web": [
                {
                    "url": "https://a.example/1",
                    "title": "One",
                    "description": "First.",
                    "position": 1,
                }
            ]
        },
        "creditsUsed": 2,
    },
    "searxng": {
        "query": "who won",
        "number_of_results": 0,
        "results": [
            {
                "url": "https://a.example/1",
                "title": "One",
                "content": "First.",
                "publishedDate": "2026-11-01",
                "engine": "duckduckgo",
                "score": 1.0,
            }
        ],
        "unresponsive_engines": [],
    },
}


def encoded(engine: SearchEngine, search: Search = SEARCH) -> EngineRequest:
    access = EngineAccess(base_url=ENGINE_HOSTS[engine].base_url or "https://search.own", key=KEY)
    return ENGINES[engine].encode(search, access)


def test_the_two_tables_have_the_same_engines() -> None:
    assert set(ENGINES) == set(ENGINE_HOSTS) == set(get_args(SearchEngine))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_reply_becomes_sources(engine: SearchEngine) -> None:
    (source,) = ENGINES[engine].decode(msgspec.json.encode(REPLIES[engine]))
    has_date = engine != "firecrawl"
    assert source == (PAGE if has_date else msgspec.structs.replace(PAGE, published=None))


@cells("engine", ENGINES)
@cells(
    "body",
    [b"", b"<html>", b"[]", b'{"results": 1, "web": 1, "data": 1}', b'{"x":' + b"[" * 100_000],
    ids=["empty", "html", "list", "numbers", "deep"],
)
def test_a_reply_of_another_shape_is_a_failure_that_repeats_none_of_it(
    engine: SearchEngine, body: bytes
) -> None:
    with pytest.raises(RunFailure, match="could not be read") as failure:
        ENGINES[engine].decode(body)
    assert failure.value.fault == "unavailable"


@pytest.mark.parametrize("engine", sorted(ENGINES.keys() - {"brave"}))
def test_a_reply_without_results_is_a_failure_and_not_a_search_that_found_none(
    engine: SearchEngine,
) -> None:
    """Brave leaves its member `web` out where it has found nothing."""
    with pytest.raises(RunFailure, match="could not be read"):
        ENGINES[engine].decode(b'{"success": false, "error": "over the limit of your plan"}')
    assert ENGINES[engine].decode(b'{"success": true, "results": [], "data": {"web": []}}') == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_the_key_is_in_a_header_and_nowhere_else(engine: SearchEngine) -> None:
    request = encoded(engine)
    assert any(value.endswith(KEY) for value in request.headers.values())
    assert KEY not in request.url
    assert KEY.encode() not in request.body


@pytest.mark.parametrize(
    ("engine", "url", "body"),
    [
        (
            "tavily",
            "https://api.tavily.com/search",
            {
                "query": "who won",
                "search_depth": "basic",
                "max_results": 3,
                "include_domains": ["a.example", "b.example"],
                "exclude_domains": ["bad.a.example"],
            },
        ),
        (
            "exa",
            "https://api.exa.ai/search",
            {
                "query": "who won",
                "type": "auto",
                "numResults": 3,
                "includeDomains": ["a.example", "b.example"],
                "excludeDomains": ["bad.a.example"],
                "userLocation": "DE",
                "contents": {"highlights": True},
            },
        ),
        (
            "firecrawl",
            "https://api.firecrawl.dev/v2/search",
            {
                "query": "who won",
                "limit": 3,
                "sources": ["web"],
                "includeDomains": ["a.example", "b.example"],
                "location": "Berlin, de",
                "country": "DE",
            },
        ),
    ],
)
def test_a_search_is_posted(engine: SearchEngine, url: str, body: dict[str, object]) -> None:
    request = encoded(engine)
    assert (request.method, request.url) == ("POST", url)
    assert msgspec.json.decode(request.body) == body


@pytest.mark.parametrize(
    ("engine", "path", "query"),
    [
        (
            "brave",
            "/res/v1/web/search",
            {
                "q": ["who won (site:a.example OR site:b.example) -site:bad.a.example"],
                "count": ["3"],
                "result_filter": ["web"],
                "text_decorations": ["false"],
                "country": ["DE"],
            },
        ),
        ("searxng", "/search", {"q": ["who won"], "format": ["json"]}),
    ],
)
def test_a_search_is_a_query(engine: SearchEngine, path: str, query: dict[str, list[str]]) -> None:
    request = encoded(engine)
    parts = urlsplit(request.url)
    assert (request.method, parts.path, request.body) == ("GET", path, b"")
    assert parse_qs(parts.query) == query


def test_words_of_a_query_cannot_leave_it() -> None:
    hostile = msgspec.structs.replace(SEARCH, query="x&count=99#/../ü", domains=DomainRules())
    parts = urlsplit(encoded("brave", hostile).url)
    assert parse_qs(parts.query)["q"] == ["x&count=99#/../ü"]
    assert parse_qs(parts.query)["count"] == ["3"]


def test_domains_that_are_too_long_for_a_query_are_left_to_the_filter() -> None:
    many = DomainRules(allowed=tuple(f"{n}.example.com" for n in range(40)))
    request = encoded("brave", msgspec.structs.replace(SEARCH, domains=many))
    assert parse_qs(urlsplit(request.url).query)["q"] == ["who won"]


def test_a_country_that_brave_does_not_know_is_not_sent() -> None:
    elsewhere = msgspec.structs.replace(SEARCH, location=UserLocation(country="IS"))
    assert "country" not in parse_qs(urlsplit(encoded("brave", elsewhere).url).query)
