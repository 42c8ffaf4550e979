"""Firecrawl's search.

https://docs.firecrawl.dev/api-reference/endpoint/search (2026-11-22): `POST /v2/search`, a bearer
token, queries of at most 500 characters, `web` in `sources`, either included or excluded domains.
All searches with up to ten results have the same price; scraped pages would be charged extra.
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

_RESULTS_MAX: Final = 10
_DOMAINS_MAX: Final = 50


class _Result(Struct, frozen=True, kw_only=True):
    url: str
    title: str | None = None
    description: str | None = None


class _Found(Struct, frozen=True, kw_only=True):
    web: tuple[_Result, ...] = ()


class _Reply(Struct, frozen=True, kw_only=True):
    data: _Found


def _encode(search: Search, access: EngineAccess) -> EngineRequest:
    """Return the request for a search."""
    location = search.location
    names = (location.city, location.region, location.country) if location else ()
    included = listed(search.domains.allowed, _DOMAINS_MAX)
    return post_json(
        f"{access.base_url}/v2/search",
        {
            "query": search.query,
            "limit": min(search.results_max, _RESULTS_MAX),
            "sources": ["web"],
            "includeDomains": included,
            "excludeDomains": None if included else listed(search.domains.blocked, _DOMAINS_MAX),
            "location": ", ".join(filter(None, names)) or None,
            "country": location.country.upper() if location and location.country else None,
        },
        bearer(access.key),
    )


def _decode(body: bytes) -> tuple[Source, ...]:
    """Return the results in a reply, best first."""
    return tuple(
        Source(url=result.url, title=result.title or "", text=result.description or "")
        for result in read_engine_reply(body, _Reply).data.web
    )


FIRECRAWL: Final = SearchCodec(encode=_encode, decode=_decode, query_characters_max=500)
