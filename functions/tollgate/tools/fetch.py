"""The web_fetch tool, which returns the text of a web page or document at a known URL."""

import asyncio
import codecs
from collections.abc import Mapping
from email.message import Message
from typing import Final

from msgspec import Struct

from tollgate.core.addresses import DomainRules, host_of
from tollgate.core.content import Text
from tollgate.core.documents.reading import (
    DocumentReader,
    ReaderUnavailable,
    ReadingShare,
    ReadingTask,
    UnreadableDocument,
)
from tollgate.core.files.media_types import detect_media_type
from tollgate.core.server_tools import URL_LINE, RunResult, Source
from tollgate.http1.egress import Fetched
from tollgate.routing.tool_sections import WebFetchSection
from tollgate.tools.kinds import TITLE_BYTES_MAX, URL_BYTES_MAX, cut
from tollgate.tools.known_urls import KnownUrls
from tollgate.tools.ports.base import PageFetcher, PageLimits, RunFailure

# Maximum number of pages that are read from a document.
_PAGES_MAX: Final = 50
_LEFT_OUT: Final = "\n[The rest of the page is left out.]"
_PDF: Final = "application/pdf"
_WEB_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_PLAIN: Final = frozenset(
    {"application/json", "application/ld+json", "application/xml", "application/yaml"}
)
# Encodings of web pages by their Python names; UTF-8 replaces all others. Servers must not select
# arbitrary Python codecs: `punycode` takes more than a minute for 1 MB.
# https://encoding.spec.whatwg.org/#names-and-labels (2026-11-22)
_UTF_8: Final = "utf-8"
_CHARSETS: Final = frozenset(
    (
        *("ascii", _UTF_8, "utf-16", "utf-16-le", "utf-16-be"),
        *(f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))),
        *(f"cp{page}" for page in (866, 874, 932, 949, *range(1250, 1259))),
        *("koi8-r", "koi8-u", "mac-roman", "tis-620"),
        *("gb2312", "gbk", "gb18030", "big5", "big5hkscs"),
        *("euc_jp", "iso2022_jp", "shift_jis", "euc_kr"),
    )
)


class WebFetch(Struct, frozen=True, kw_only=True):
    """Fetches pages from public addresses; a reader extracts the text of HTML and PDF."""

    section: WebFetchSection
    fetcher: PageFetcher
    reader: DocumentReader | None
    workspace_id: str

    async def run(
        self,
        arguments: Mapping[str, object],
        *,
        known: KnownUrls,
        domains: DomainRules,
        timeout_s: float,
    ) -> RunResult:
        """Return the text of a page; raise RunFailure if the page must not or cannot be read."""
        url = _url(arguments, known, domains)
        limits = PageLimits(domains=domains, bytes_max=self.section.bytes_max, timeout_s=timeout_s)
        try:
            # The time limit includes reading, because a hostile page may keep a reader busy.
            async with asyncio.timeout(timeout_s):
                page = await self.fetcher.fetch_page(url, limits)
                title, text = await self._read(page)
        except TimeoutError as late:
            words = "the page could not be read in time"
            raise RunFailure("url_not_accessible", words) from late
        text = _shorten(text, self.section.text_bytes_max)
        title = cut(" ".join(title.split()), TITLE_BYTES_MAX)
        known.note((page.url,))
        known.note_text(text)
        answer = f"{URL_LINE}{page.url}\nTitle: {title}\n\n{text}"
        source = Source(url=page.url, title=title, text=text)
        return RunResult(content=(Text(text=answer),), sources=(source,))

    async def _read(self, page: Fetched) -> tuple[str, str]:
        """Return the title and text of a page."""
        claimed, charset = _claimed(page.claimed_type)
        media_type = detect_media_type(page.content, claimed)
        is_plain = claimed.startswith("text/") or claimed in _PLAIN
        if media_type != _PDF and claimed not in _WEB_PAGES:
            if not is_plain or b"\0" in page.content[:1024]:
                raise RunFailure(
                    "unsupported_content_type", f"the type of the page is {claimed or 'unknown'}"
                )
            return "", _decode(page.content, charset)
        if self.reader is None:
            raise RunFailure("unsupported_content_type", "only plain text can be read")
        type_ = _PDF if media_type == _PDF else "text/html"
        task = ReadingTask(pages_max=_PAGES_MAX, cuts=True, address=page.url)
        share = ReadingShare(workspace_id=self.workspace_id)
        try:
            document = await self.reader.read(page.content, type_, task, share)
        except UnreadableDocument as unreadable:
            words = f"the page cannot be read: {unreadable.fault.value}"
            raise RunFailure("url_not_accessible", words) from unreadable
        except ReaderUnavailable as failure:
            raise RunFailure("unavailable", "pages cannot be read at the moment") from failure
        return document.title, "\n\n".join(document_page.text for document_page in document.pages)


def _url(arguments: Mapping[str, object], known: KnownUrls, domains: DomainRules) -> str:
    url = arguments.get("url")
    if not isinstance(url, str) or not url.strip():
        raise RunFailure("invalid_input", "`url` must be an address")
    url = url.strip()
    if len(url.encode("utf-8", errors="replace")) > URL_BYTES_MAX:
        words = f"the address has more than {URL_BYTES_MAX} bytes"
        raise RunFailure("url_too_long", words)
    host = host_of(url)
    if host is None:
        raise RunFailure("invalid_input", "`url` must begin with http:// or https://")
    known_url = known.find(url)
    if known_url is None:
        words = "only addresses in the conversation or in earlier results can be read"
        raise RunFailure("url_not_in_prior_context", words)
    if not domains.admits(host):
        raise RunFailure("url_not_allowed", "this domain is not allowed")
    return known_url


def _claimed(header: str | None) -> tuple[str, str]:
    """Return the media type and charset from a Content-Type header, in lower case."""
    message = Message()
    # `email` can parse only headers in ASCII.
    plain = (header or "")[:200].encode("ascii", errors="replace").decode()
    message["content-type"] = plain.replace("\n", " ").replace("\r", " ")
    type_ = message.get_content_type() if header else ""
    return type_, (message.get_content_charset() or _UTF_8)


def _decode(content: bytes, charset: str) -> str:
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        name = _UTF_8
    return content.decode(name if name in _CHARSETS else _UTF_8, errors="replace")


def _shorten(text: str, bytes_max: int) -> str:
    """Truncate text to `bytes_max` bytes, including a note about the truncation."""
    shortened = cut(text, bytes_max)
    if shortened == text:
        return text
    return cut(text, bytes_max - len(_LEFT_OUT)) + _LEFT_OUT
