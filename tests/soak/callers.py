"""The callers of a soak: four client formats, streamed and whole, some of which leave."""

import asyncio
import json
import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import aiohttp

from tests.soak.accounts import MODELS, SoakKey
from tests.soak.provider import WORD, Arrival
from tests.unit.engine.client_formats import CLIENT_FORMATS, ClientFormat

# delivered: a whole answer, to its last byte    left: the caller went away
# refused: a status of 400 or more               broken: an error in the stream, or a cut connection
# away: no process listened                      unknown: 503, and the answer may be billed
# unreadable: a whole answer that its format does not allow
Ending = Literal["delivered", "left", "refused", "broken", "away", "unknown", "unreadable"]
_GIVES_UP_S: Final = 60.0
_LEAVES: Final = 0.08
_IS_IDEMPOTENT: Final = 0.10
_REPEATS: Final = 0.5
_REMEMBERED: Final = 20
_ERRORS: Final = (b'"error":{', b"event: error\n", b"event: response.failed\n")
_ENDS: Final = {
    "chat_completions": b"data: [DONE]\n\n",
    "completions": b"data: [DONE]\n\n",
    "messages": b"event: message_stop",
    "responses": b"event: response.completed",
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it is sent; one that is repeated is sent again as it was."""

    number: int
    format_name: str
    key: SoakKey
    body: bytes
    streamed: bool
    idempotency_key: str | None = None
    # Seconds after which the caller goes away.
    leaves_after_s: float | None = None

    @property
    def format(self) -> ClientFormat:
        return CLIENT_FORMATS[self.format_name]


@dataclass(kw_only=True)
class Told:
    """What a caller got; moments are of this machine's monotonic clock."""

    asked: Asked
    server: int
    sent_s: float
    began_s: float = 0.0
    ended_s: float = 0.0
    ending: Ending = "broken"
    status: int = 0
    code: str = ""
    generation_id: str = ""
    words: int = 0
    replayed: bool = False

    def added_ms(self, arrivals: dict[int, Arrival]) -> float | None:
        """Return what the gateway added before the first byte of a stream.

        None where the provider was asked twice, or another request had the same number.
        """
        seen = arrivals.get(self.asked.number)
        if (
            self.ending != "delivered"
            or not self.asked.streamed
            or self.asked.idempotency_key is not None
            or seen is None
            or seen.attempts != 1
        ):
            return None
        return 1_000 * (seen.arrived_s - self.sent_s + self.began_s - seen.first_sent_s)


@dataclass
class Callers:
    """Draws requests and sends them; `told` has what became of each."""

    keys: Sequence[SoakKey]
    draw: random.Random
    told: list[Told] = field(default_factory=list)
    _numbers: int = 0
    _idempotent: deque[Asked] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    def next(self) -> Asked:
        """Draw the next request."""
        draw = self.draw
        idempotent = draw.random() < _IS_IDEMPOTENT
        if idempotent and self._idempotent and draw.random() < _REPEATS:
            known = draw.choice(self._idempotent)
            return replace(known, leaves_after_s=None)
        [key] = draw.choices(self.keys, [it.share for it in self.keys])
        asked = self.ask(
            draw.choice(list(CLIENT_FORMATS)),
            key,
            model=draw.choice(MODELS),
            streamed=draw.random() < 0.6,
            idempotency_key=f"k-{self._numbers}" if idempotent else None,
            leaves_after_s=draw.uniform(0.02, 0.4) if draw.random() < _LEAVES else None,
        )
        if idempotent:
            self._idempotent.append(asked)
        return asked

    def ask(
        self, format_name: str, key: SoakKey, *, model: str, streamed: bool, **more: Any
    ) -> Asked:
        """Make a request with a number of its own."""
        self._numbers += 1
        words = f"Say it #{self._numbers}#"
        question: dict[str, object] = {
            "completions": {"prompt": words},
            "responses": {"input": words},
        }.get(format_name, {"messages": [{"role": "user", "content": words}]})
        limit = CLIENT_FORMATS[format_name].limit
        body = {"model": model, "stream": streamed, limit: 64, **question}
        if streamed and format_name in ("chat_completions", "completions"):
            body["stream_options"] = {"include_usage": True}
        return Asked(
            number=self._numbers,
            format_name=format_name,
            key=key,
            body=json.dumps(body).encode(),
            streamed=streamed,
            **more,
        )

    async def send(self, http: aiohttp.ClientSession, url: str, server: int, asked: Asked) -> None:
        """Send a request and note what becomes of it."""
        told = Told(asked=asked, server=server, sent_s=time.monotonic())
        try:
            async with asyncio.timeout(asked.leaves_after_s or _GIVES_UP_S):
                await _exchange(http, url, asked, told)
        except TimeoutError:
            told.ending = "broken" if asked.leaves_after_s is None else "left"
            told.code = "" if asked.leaves_after_s else "no answer in time"
        except aiohttp.ClientConnectorError:
            told.ending = "away"
        except (aiohttp.ClientError, ConnectionError):
            told.ending, told.code = "broken", told.code or "connection"
        told.ended_s = time.monotonic()
        self.told.append(told)


async def _exchange(http: aiohttp.ClientSession, url: str, asked: Asked, told: Told) -> None:
    headers = {"x-api-key": asked.key.secret, "content-type": "application/json"}
    if asked.idempotency_key is not None:
        headers["idempotency-key"] = asked.idempotency_key
    async with http.post(url + asked.format.row.path, data=asked.body, headers=headers) as reply:
        told.began_s = time.monotonic()
        told.status = reply.status
        told.generation_id = reply.headers.get("x-generation-id", "").removeprefix("gen-")
        told.replayed = "x-idempotent-replay" in reply.headers
        content = await reply.read()
        if reply.status >= 400:
            told.code = _code_of(content)
            unknown = reply.headers.get("x-should-retry") == "false" and reply.status == 503
            told.ending = "unknown" if unknown else "refused"
            return
    if asked.streamed and not _is_whole(asked, content):
        told.code = "in the stream"
        return
    try:
        whole = asked.format.accumulate(content) if asked.streamed else json.loads(content)
        told.words = asked.format.words(whole).count(WORD.strip())
    except (AssertionError, LookupError, ValueError) as unreadable:
        told.ending, told.code = "unreadable", f"{unreadable!r:.80}"
    else:
        told.ending = "delivered"


def _is_whole(asked: Asked, stream: bytes) -> bool:
    return _ENDS[asked.format_name] in stream and not any(it in stream for it in _ERRORS)


def _code_of(content: bytes) -> str:
    try:
        error = json.loads(content)["error"]
        return str(error.get("tollgate_code") or error.get("code") or error["type"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return "no envelope"
