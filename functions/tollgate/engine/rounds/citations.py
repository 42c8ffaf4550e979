"""Finds the links in an answer to its sources: Markdown links and bare URLs."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from tollgate.core.content import Text, ToolCall
from tollgate.core.events import Citation
from tollgate.core.request import Message, ToolMessage
from tollgate.core.server_tools import URL_LINE, Source

_URL: Final = re.compile(r"https?://[^\s<>\"'`\]\[{}|\\^]+")
# Punctuation after a URL that belongs to the sentence and not to the URL.
_TRAILING: Final = ".,;:!?*_~"
_CITATIONS_MAX: Final = 256
_SOURCE: Final = re.compile(rf"^{URL_LINE}(https?://\S+)", re.MULTILINE)


def sources_by_url(sources: Iterable[Source]) -> dict[str, Source]:
    """Return sources keyed by normalized URL; if several have the same URL, the first is used."""
    found: dict[str, Source] = {}
    for source in sources:
        found.setdefault(_key(source.url), source)
    return found


def earlier_sources(messages: Iterable[Message], tools: Collection[str]) -> Iterator[Source]:
    """Yield the sources of earlier tool runs, without titles, because a conversation does not
    contain them.
    """
    calls: set[str] = set()
    for message in messages:
        is_result = isinstance(message, ToolMessage) and message.call_id in calls
        for part in message.content:
            if isinstance(part, ToolCall) and part.name in tools:
                calls.add(part.id)
            elif isinstance(part, Text) and is_result:
                yield from (Source(url=url) for url in _SOURCE.findall(part.text))


def find_citations(text: str, sources: Mapping[str, Source]) -> Iterator[Citation]:
    """Yield a citation for each link to a source, in order."""
    seen_to = count = 0
    for match in _URL.finditer(text):
        url = _trim(match[0])
        start, end = match.start(), match.start() + len(url)
        # No part of the text is searched twice for an opening bracket, so the running time stays
        # linear.
        bracket = text.rfind("[", seen_to, start) if text.endswith("](", seen_to, start) else -1
        seen_to = end
        source = sources.get(_key(url))
        if source is None:
            continue
        title = source.title
        if bracket >= 0 and text.startswith(")", end):
            title = title or text[bracket + 1 : start - 2]
            start, end = bracket, end + 1
        yield Citation(url=source.url, title=title or None, start=start, end=end)
        count += 1
        if count == _CITATIONS_MAX:
            return


def _trim(url: str) -> str:
    """Return a URL without trailing punctuation or an unmatched closing parenthesis.

    `[a](https://b.example/c_(d))` links to `https://b.example/c_(d)`.
    """
    depth = 0
    for place, character in enumerate(url):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return url[:place].rstrip(_TRAILING)
    return url.rstrip(_TRAILING)


def _key(url: str) -> str:
    return url.partition("#")[0].rstrip("/")
