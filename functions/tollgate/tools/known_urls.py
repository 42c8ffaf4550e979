"""The URLs that a request may fetch, because its caller or a tool result contains them.

An attacker's page may make the model write the caller's secrets into a URL, such as
https://attacker.example/?q=secret. Therefore URLs that only the model has written are not fetched;
Anthropic's own tool has the same rule (docs/decisions/0149).
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Final
from urllib.parse import urlsplit

from tollgate.core.content import Document, Image, MediaUrl, Text
from tollgate.core.request import AssistantMessage, GenerationRequest
from tollgate.tools.kinds import URL_BYTES_MAX

# Maximum number of URLs for one request; a page with many links has a few hundred.
_URLS_MAX: Final = 20_000
_URL: Final = re.compile(r"https?://[^\s<>\"'`{}|\\^\x00-\x1f]+", re.IGNORECASE)
# URLs without a scheme, which are accepted only from callers ("see example.com/prices").
_BARE: Final = re.compile(
    r"(?<![\w@/.:-])(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?:/[^\s<>\"'`{}|\\^]*)?", re.IGNORECASE
)
_TRAILING: Final = ".,;:!?*_~]"
_PORTS: Final = {"http": 80, "https": 443}


class KnownUrls:
    """The URLs in the request and in results, compared by host, port, path and query."""

    def __init__(self, request: GenerationRequest) -> None:
        self._known: dict[str, str] = {}
        self._read: set[str] = set()
        for message in request.messages:
            # The assistant's text comes from the model, so its URLs are not trusted.
            if isinstance(message, AssistantMessage):
                continue
            for part in message.content:
                match part:
                    case Text(text=text):
                        self.note_text(text)
                        self.note(f"https://{address}" for address in _BARE.findall(text))
                    case Image(source=MediaUrl(url=url)) | Document(source=MediaUrl(url=url)):
                        self.note((url,))
                    case _:
                        pass

    def find(self, url: str) -> str | None:
        """Return a URL in the spelling of its first occurrence; None if the URL is not known.

        The model's own spelling is not fetched, because the number of slashes at its end could
        carry a message to the server.
        """
        key = _key(url)
        return None if key is None else self._known.get(key)

    def note_text(self, text: str) -> None:
        """Record the URLs in a string."""
        self.note(_URL.findall(text))

    def note(self, urls: Iterable[str]) -> None:
        """Record URLs."""
        for url in urls:
            if url in self._read:
                continue
            if len(self._read) >= _URLS_MAX:
                return
            self._read.add(url)
            for spelling in _spellings(url):
                if (key := _key(spelling)) is not None:
                    self._known.setdefault(key, spelling)


def _spellings(url: str) -> Iterator[str]:
    """Yield a URL found in text, and again without trailing punctuation that may belong to the
    text.
    """
    if len(url) > URL_BYTES_MAX:
        return
    yield url
    # The URL in `[title](https://a.example/b)` ends before the bracket, `https://a.example/b_(c)`
    # after the bracket. A text may have millions of brackets, so moving an index is faster than
    # copying the text for each bracket.
    end = len(url.rstrip(_TRAILING + ")"))
    for _ in range(url.count("(", 0, end) - url.count(")", 0, end)):
        end = url.find(")", end) + 1 or end
    trimmed = url[:end]
    yield trimmed
    # `[title](https://a.example/b)[next](…)` has no space after the URL.
    yield trimmed.partition(")")[0]
    if "&amp;" in trimmed:
        yield unescape(trimmed)


def _key(url: str) -> str | None:
    """Return a URL in a canonical form for comparisons; None if the URL is not valid.

    The form has no scheme, because models add `https://`, and no slash at the end of the path.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS or not host or parts.username is not None:
        return None
    server = host.rstrip(".")
    if port not in (None, *_PORTS.values()):
        server = f"{server}:{port}"
    return f"{server}{parts.path.rstrip('/')}?{parts.query}"
