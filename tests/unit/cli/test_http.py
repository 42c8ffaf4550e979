"""Lists over HTTP, as the commands read them."""

from typing import Any

import pytest

from tollgate.cli.gateway.http import Api, Query


class Scripted(Api, frozen=True):
    """An api that has its replies ready."""

    replies: list[dict[str, Any]]

    def get(self, path: str, query: Query | None = None) -> Any:
        return self.replies.pop(0)


def test_what_a_list_leaves_out_is_said_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [
        {"data": [1], "next_cursor": "there", "unreadable": ["W#acme K#one"]},
        {"data": [2], "next_cursor": None},
    ]
    api = Scripted("http://localhost", "sk-tg-x", pages)

    assert list(api.pages("/keys", {}, "cursor")) == [1, 2]

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "Skipped, because it is corrupt: W#acme K#one\n"
