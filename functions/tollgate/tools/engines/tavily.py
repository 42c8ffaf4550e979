"""Tavily's search.

https://docs.tavily.com/documentation/api-reference/endpoint/search (2026-11-22): `POST /search`, a
bearer token, at most 20 results, 300 included domains and 150 excluded domains. A search with
`search_depth: basic` costs one credit. `country` is not sent, because the API expects English names
but callers send country codes.
"""

from typing import Final

from msgspec import Struct

from tollgate.core.server_tools import Source
from tollgate.tools.engines.codec import (
    EngineAccess,
    Search,
    SearchCodec,
    bearer,
    listed,
    post_json,
    read_engine_reply,
)
from tollgate.tools.ports.base import EngineRequest

_RESULTS_MAX: Final = 20
_INCLUDED_MAX: Final = 300
_EXCLUDED_MAX: Final = 150


class _Result(Struct, frozen=True, kw_only=True):
    url: str
    title: str = ""
    content: str = ""
    published_date: str | None = None


class _Reply(Struct, frozen=True, kw_only=True):
    results: tuple[_Result, ...]


def _encode(search: Search, access: EngineAccess) -> EngineRequest:
    """Return the request for a search."""
    return post_json(
        f"{access.base_url}/search",
        {
            "query": search.query,
            "search_depth": "basic",
            "max_results": min(search.results_max, _RESULTS_MAX),
            "include_domains": listed(search.domains.allowed, _INCLUDED_MAX),
            "exclude_domains": listed(search.domains.blocked, _EXCLUDED_MAX),
        },
        bearer(access.key),
    )


def _decode(body: bytes) -> tuple[Source, ...]:
    """Return the results in a reply, best first."""
    return tuple(
        Source(
            url=result.url, title=result.title, text=result.content, published=result.published_date
        )
        for result in read_engine_reply(body, _Reply).results
    )


TAVILY: Final = SearchCodec(encode=_encode, decode=_decode, query_characters_max=400)
