"""Lists over HTTP, as the commands read them."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from msgspec import field

from tollgate.cli.gateway.http import Api, Query, Refused


class Scripted(Api, frozen=True):
    """An api that has its replies ready."""

    replies: list[dict[str, Any]] = field(default_factory=list)

    def get(self, path: str, query: Query | None = None) -> Any:
        return self.replies.pop(0)


def test_what_a_list_leaves_out_is_said_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [
        {"data": [1], "next_cursor": "there", "unreadable": ["W#acme K#one"]},
        {"data": [2], "next_cursor": None},
    ]
    api = Scripted("http://localhost", "sk-tg-x", replies=pages)

    assert list(api.pages("/keys", {}, "cursor")) == [1, 2]

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "Skipped, because it is corrupt: W#acme K#one\n"


def test_progress_is_erased_before_the_caller_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`generations ls --limit 5` once printed its table behind the progress of a later page."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    pages = [{"data": [number], "next_cursor": "more"} for number in (1, 2, 3)]
    read = Scripted("http://localhost", "sk-tg-x", replies=pages).pages("/keys", {}, "cursor")
    assert (next(read), capsys.readouterr().err) == (1, "")
    assert next(read) == 2
    assert capsys.readouterr().err == "\r\x1b[K/keys: page 2 …\r\x1b[K"


class Busy(Api, frozen=True):
    """An api that refuses with some statuses before it answers."""

    statuses: list[int] = field(default_factory=list)

    @contextmanager
    def _open(self, method: str, path: str, query: Query, body: object) -> Iterator[Any]:
        if self.statuses:
            raise Refused(self.statuses.pop(0), "busy")
        yield io.BytesIO(b'{"data": 1}')


@pytest.mark.parametrize(
    ("statuses", "method", "pauses_s"),
    [
        ([], "GET", []),
        ([503, 429], "GET", [1.0, 3.0]),
        ([503, 503, 503, 503], "GET", None),
        ([503], "POST", None),
        ([404], "GET", None),
    ],
)
def test_a_read_is_tried_again_while_the_gateway_is_busy(
    statuses: list[int], method: str, pauses_s: list[float] | None
) -> None:
    paused: list[float] = []
    api = Busy("http://localhost", "sk-tg-x", paused.append, statuses=statuses)
    call = partial(api.get, "/keys") if method == "GET" else partial(api.post, "/keys", {})
    if pauses_s is None:
        with pytest.raises(Refused):
            call()
    else:
        assert call() == {"data": 1}
        assert paused == pauses_s
