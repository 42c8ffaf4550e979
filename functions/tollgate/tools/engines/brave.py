"""Brave's web search.

https://api-dashboard.search.brave.com/api-reference/web/search/get (2026-11-22): `GET
/res/v1/web/search`, the key in `X-Subscription-Token`, queries of at most 400 characters and 50
words, at most 20 results. Domains are given as operators in the query (`site:`, `-site:`;
documentation, "Search operators", the same day).
"""

import re
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct, field

from tollgate.core.addresses import DomainRules
from tollgate.core.server_tools import Source
from tollgate.tools.engines.codec import EngineAccess, Search, SearchCodec, read_engine_reply
from tollgate.tools.ports.base import EngineRequest

_RESULTS_MAX: Final = 20
_QUERY_CHARACTERS_MAX: Final = 400
_QUERY_WORDS_MAX: Final = 50
# Supported countries (documentation, "Country codes", 2026-11-22); Brave refuses all others.
_COUNTRY_CODES: Final = (
    "AR AU AT BE BR CA CL CN DE DK ES FI FR GB GR HK ID IN IT JP KR MX MY NL NO NZ PH PL PT RU SA "
    "SE CH TR TW US ZA"
)
_COUNTRIES: Final = frozenset(_COUNTRY_CODES.split())
_TAG: Final = re.compile(r"<[^<>]{0,40}>")


class _Result(Struct, frozen=True, kw_only=True):
    url: str
    title: str = ""
    description: str = ""
    extra_snippets: tuple[str, ...] = ()
    page_age: str | None = None


class _Web(Struct, frozen=True, kw_only=True):
    results: tuple[_Result, ...] = ()


class _Reply(Struct, frozen=True, kw_only=True):
    web: _Web = field(default_factory=_Web)


def _encode(search: Search, access: EngineAccess) -> EngineRequest:
    """Return the request for a search."""
    country = (search.location.country or "").upper() if search.location else ""
    query = {
        "q": _with_operators(search.query, search.domains),
        "count": str(min(search.results_max, _RESULTS_MAX)),
        "result_filter": "web",
        "text_decorations": "false",
        **({"country": country} if country in _COUNTRIES else {}),
    }
    key = {} if access.key is None else {"x-subscription-token": access.key}
    return EngineRequest(
        method="GET",
        url=f"{access.base_url}/res/v1/web/search?{urlencode(query)}",
        headers={"accept": "application/json", **key},
    )


def _decode(body: bytes) -> tuple[Source, ...]:
    """Return the results in a reply, best first."""
    return tuple(
        Source(
            url=result.url,
            title=_TAG.sub("", result.title),
            text=_TAG.sub("", "\n".join((result.description, *result.extra_snippets))).strip(),
            published=result.page_age,
        )
        for result in read_engine_reply(body, _Reply).web.results
    )


def _with_operators(query: str, domains: DomainRules) -> str:
    """Add domain operators to a query if it stays short enough; results are filtered anyway."""
    included = " OR ".join(f"site:{domain}" for domain in domains.allowed)
    excluded = " ".join(f"-site:{domain}" for domain in domains.blocked)
    longer = " ".join(filter(None, (query, f"({included})" if included else "", excluded)))
    fits = len(longer) <= _QUERY_CHARACTERS_MAX and len(longer.split()) <= _QUERY_WORDS_MAX
    return longer if fits else query


BRAVE: Final = SearchCodec(
    encode=_encode, decode=_decode, query_characters_max=_QUERY_CHARACTERS_MAX
)
