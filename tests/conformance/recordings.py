"""Recorded exchanges, found through TOLLGATE_RECORDINGS."""

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Recording:
    """One exchange."""

    path: Path
    exchange: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def sent(self) -> dict[str, Any]:
        """The JSON body of the request, empty where it is not known."""
        return (self.exchange["request"] or {}).get("json") or {}

    @property
    def status(self) -> int:
        return int(self.exchange["response"]["status"])

    @property
    def headers(self) -> dict[str, str]:
        headers = self.exchange["response"]["headers"] or {}
        return {name.lower(): str(value) for name, value in headers.items()}

    @property
    def body_form(self) -> str:
        return str(self.exchange["response"]["body_form"])

    @property
    def body(self) -> bytes:
        """The body as it came over the wire."""
        response = self.exchange["response"]
        if response["encoding"] == "base64":
            return base64.b64decode(response["body"])
        body = response["body"]
        return (body if isinstance(body, str) else json.dumps(body)).encode()

    @property
    def is_framed(self) -> bool:
        """Whether the body has its framing: some fixtures keep one payload a line instead."""
        return not self.body_form.startswith("json-lines")


def recordings(*folders: str) -> Iterator[Recording]:
    """The recordings of some provider APIs; none where there is no folder of recordings."""
    root = os.environ.get("TOLLGATE_RECORDINGS")
    for folder in folders if root else ():
        for path in sorted((Path(root or "") / folder).glob("*.json")):
            yield Recording(path, json.loads(path.read_bytes()))


def cases(chosen: Iterator[Recording]) -> list[Any]:
    """Parameters of a test, or one that skips and says why."""
    found = [pytest.param(recording, id=recording.name) for recording in chosen]
    missing = pytest.mark.skip(reason="TOLLGATE_RECORDINGS is not set or has none of these")
    return found or [pytest.param(None, marks=missing, id="none")]
