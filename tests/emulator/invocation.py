"""One invocation: what the gateway asked, what the function answered, and when."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.emulator.integration import Prelude
from tests.emulator.violations import Rule

FailureKind = Literal["error", "exit", "timeout", "refused", "truncated"]


@dataclass(frozen=True)
class Opened:
    """The runtime began to post its response."""

    streaming: bool
    content_type: str | None


@dataclass(frozen=True)
class Piece:
    """Response bytes: one HTTP chunk of the runtime's POST."""

    data: bytes


@dataclass(frozen=True)
class Completed:
    """The response was posted to its end; error trailers do not change that."""


@dataclass(frozen=True)
class Failed:
    """There will be no (more) response."""

    kind: FailureKind
    message: str


Output = Opened | Piece | Completed | Failed


@dataclass(frozen=True)
class Chunk:
    """A chunk of the runtime's POST as it came; `at_s` counts from the start of the invocation."""

    data: bytes
    at_s: float


@dataclass(eq=False)
class Invocation:
    """The record of an invocation, and the channel from the Runtime API to the gateway.

    `status` is what the client got, `error` why the invocation or its environment failed,
    `trailers` the error trailers; `finished` is set when the runtime asks for the next event or is
    gone.
    """

    event: dict[str, Any]
    report: Callable[[Rule, str], None] = field(repr=False)
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    invocation_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    deadline_ms: int = 0
    status: int | None = None
    prelude: Prelude | None = None
    chunks: list[Chunk] = field(default_factory=list)
    trailers: dict[str, str] = field(default_factory=dict)
    error: str | None = None
    client_gone: bool = False
    duration_s: float | None = None
    output: asyncio.Queue[Output] = field(default_factory=asyncio.Queue, repr=False)
    finished: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    opened: bool = False
    answered: bool = False
    cut_short: bool = False
    _started_s: float = 0.0

    @property
    def payload(self) -> bytes:
        return json.dumps(self.event, separators=(",", ":")).encode()

    def start(self, timeout_s: float) -> None:
        """Begin the clock: the event leaves for the runtime."""
        self._started_s = time.monotonic()
        self.deadline_ms = int((time.time() + timeout_s) * 1000)

    def open(self, *, streaming: bool, content_type: str | None) -> None:
        self.opened = True
        self.output.put_nowait(Opened(streaming, content_type))

    def add(self, data: bytes) -> None:
        self.chunks.append(Chunk(data, time.monotonic() - self._started_s))
        self.output.put_nowait(Piece(data))

    def complete(self) -> None:
        self.answered = True
        self.output.put_nowait(Completed())

    def fail(self, kind: FailureKind, message: str) -> None:
        """Record why; a response that was already complete stays as the client saw it."""
        self.error = self.error or message
        if not self.answered:
            self.answered = True
            self.output.put_nowait(Failed(kind, message))

    def finish(self) -> None:
        """The environment is done with it: the billed duration ends here."""
        if not self.finished.is_set():
            self.duration_s = time.monotonic() - self._started_s if self._started_s else 0.0
            self.finished.set()
