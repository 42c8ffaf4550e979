"""Client of a running gateway's API."""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import click
from msgspec import Struct
from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.clock import SystemClock
from tollgate.core.errors import ErrorCode

_TIMEOUT_S: Final = 60.0
_REPLY_BYTES_MAX: Final = 64 * 1024 * 1024
_PIECE_BYTES: Final = 1024 * 1024
_PAGES_MAX: Final = 1000
# Statuses after which a gateway may answer soon, and the waits before the retries.
_BUSY: Final = frozenset({429, 502, 503, 504})
_WAITS_S: Final = (1.0, 3.0, 9.0)
Query = Mapping[str, str | int | Sequence[str] | None]

gateway_url = click.option(
    "--url",
    envvar="TOLLGATE_URL",
    default="http://localhost:8787/api/v1",
    show_default=True,
    show_envvar=True,
    help="Base URL of the gateway.",
)

# Advice for the user after an error, by HTTP status.
_NEXT_STEPS: Final = {
    401: "Set TOLLGATE_KEY to a valid key (`tollgate dev` prints one for a local gateway), or "
    "run `tollgate login`.",
    403: "Set TOLLGATE_KEY to a management key (`tollgate dev` prints one for a local gateway), or "
    "ask an admin of the workspace.",
    404: "TOLLGATE_URL ends in /api/v1; `tollgate keys ls` and `tollgate generations ls` list "
    "existing ids.",
    402: "`tollgate credits show` shows the balance, `tollgate credits add` adds to it.",
    503: "Try again in a moment; /v1/health/ready reports whether the gateway is ready.",
}


class Refused(click.ClickException):
    """An error response from the gateway, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api(Struct, frozen=True):
    """Client of a gateway, with one key."""

    url: str
    key: str
    pause: Callable[[float], None] = SystemClock().pause
    commit: str | None = None
    """Commit for the audit log's entries of changes."""

    @override
    def __repr__(self) -> str:
        return f"Api(url={self.url!r})"

    def get(self, path: str, query: Query | None = None) -> Any:
        """Send GET and return the JSON reply; numbers with a decimal point become Decimal."""
        return self._send("GET", path, query or {}, None)

    def text(self, path: str, query: Query) -> str:
        """Send GET and return a text reply, such as CSV."""
        return self._exchange("GET", path, query, None).decode()

    def post(self, path: str, body: Mapping[str, object], query: Query | None = None) -> Any:
        """Send POST and return the JSON reply."""
        return self._send("POST", path, query or {}, body)

    def patch(self, path: str, body: Mapping[str, object]) -> Any:
        """Send PATCH and return the JSON reply."""
        return self._send("PATCH", path, {}, body)

    def delete(self, path: str) -> Any:
        """Send DELETE and return the JSON reply."""
        return self._send("DELETE", path, {}, None)

    def pages(self, path: str, query: Query, cursor: str) -> Iterator[Any]:
        """Yield each item on each page of a list, and print the names of corrupt items.

        `cursor` is the query parameter for the page. Raises ClickException after 1,000 pages.
        """
        for reply in self.read_pages(path, query, cursor):
            yield from reply["data"]
            for name in reply.get("unreadable", ()):
                click.echo(f"Skipped, because it is corrupt: {name}", err=True)

    def read_pages(self, path: str, query: Query, cursor: str) -> Iterator[Any]:
        """Yield each page of a list; raise ClickException after 1,000 pages."""
        position: str | None = None
        for number in range(1, _PAGES_MAX + 1):
            shows_progress = number > 1 and sys.stderr.isatty()
            if shows_progress:
                click.echo(f"\r\x1b[K{path}: page {number} …", nl=False, err=True)
            reply = self.get(path, {**query, cursor: position})
            if shows_progress:
                # The progress is erased now, because the caller may print before the next page.
                click.echo("\r\x1b[K", nl=False, err=True)
            position = reply.get("next_cursor")
            yield reply
            if position is None:
                return
        raise click.ClickException(
            f"{path} has more than {_PAGES_MAX} pages: narrow the selection."
        )

    def download(self, path: str) -> Iterator[bytes]:
        """Send GET and yield the reply in pieces, whatever its size."""
        with self._open("GET", path, {}, None) as reply:
            while piece := reply.read(_PIECE_BYTES):
                yield piece

    def upload(self, url: str, file: Path, headers: Mapping[str, str]) -> None:
        """Send a file by PUT to an address that the gateway has signed, without the key."""
        with file.open("rb") as content:
            request = urllib.request.Request(  # noqa: S310 - the gateway signs http and https only
                url,
                method="PUT",
                data=content,
                headers={**headers, "content-length": str(file.stat().st_size)},
            )
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310
                    return
            except urllib.error.HTTPError as refused:
                raise Refused(refused.code, _refusal(refused)) from refused
            except (OSError, ValueError) as failed:
                raise self._unanswered(failed) from failed

    def _send(self, method: str, path: str, query: Query, body: Mapping[str, object] | None) -> Any:
        content = self._exchange(method, path, query, body)
        try:
            return json.loads(content, parse_float=Decimal)
        except ValueError as failed:
            raise self._unanswered(failed) from failed

    def _exchange(
        self, method: str, path: str, query: Query, body: Mapping[str, object] | None
    ) -> bytes:
        """Send a request; retry a GET while the gateway is busy."""
        waits_s = list(_WAITS_S) if method == "GET" else []
        while True:
            try:
                with self._open(method, path, query, body) as reply:
                    content: bytes = reply.read(_REPLY_BYTES_MAX)
                    return content
            except Refused as refused:
                if refused.status not in _BUSY or not waits_s:
                    raise
            self.pause(waits_s.pop(0))

    @contextmanager
    def _open(
        self, method: str, path: str, query: Query, body: Mapping[str, object] | None
    ) -> Iterator[Any]:
        """Send a request and open its reply; raise ClickException if the request fails."""
        parameters = urlencode({name: value for name, value in query.items() if value}, doseq=True)
        url = f"{self.url}{quote(path)}" + (f"?{parameters}" if parameters else "")
        request = urllib.request.Request(  # noqa: S310 - `gateway` lets http and https pass
            url,
            method=method,
            data=None if body is None else to_json(body),
            headers={"content-type": "application/json"},
        )
        # The gateway redirects a download to the bucket, which must not receive the key.
        request.add_unredirected_header("authorization", f"Bearer {self.key}")
        if self.commit is not None:
            request.add_unredirected_header("x-tollgate-commit", self.commit)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:  # noqa: S310
                yield reply
        except urllib.error.HTTPError as refused:
            raise Refused(refused.code, _refusal(refused)) from refused
        except (OSError, ValueError) as failed:
            raise self._unanswered(failed) from failed

    def _unanswered(self, failed: Exception) -> click.ClickException:
        reason = getattr(failed, "reason", failed)
        return click.ClickException(
            f"{self.url} does not answer: {reason}.\n"
            "Set TOLLGATE_URL to the gateway's base URL, or start one: `tollgate dev`."
        )


def gateway(url: str, key: str | None) -> Api:
    """Return a client; raise ClickException for an invalid URL or a missing key."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise click.ClickException(
            f"{url} is not an http or https URL.\nSet TOLLGATE_URL to the gateway's base URL."
        )
    if not key:
        raise click.ClickException(f"No key is set.\n{_NEXT_STEPS[401]}")
    return Api(url.rstrip("/"), key)


def _refusal(refused: urllib.error.HTTPError) -> str:
    """Return the gateway's error message, and advice for the user."""
    try:
        error = json.loads(refused.read(_REPLY_BYTES_MAX))["error"]
        message = f"{error['message']} ({error['code']}, request {error['request_id']})"
        if error["code"] == ErrorCode.MODEL_NOT_FOUND:
            return f"{message}\nGET /v1/models lists the names of models, routes and aliases."
    except (ValueError, KeyError, TypeError):
        message = f"HTTP {refused.code} {refused.reason}"
    return (
        f"{message}\n{_NEXT_STEPS.get(refused.code, '`--help` shows the options of the command.')}"
    )
