"""A provider of a soak: it answers in two formats, and fails as its seed draws.

The number in a prompt (`#17#`) finds the request again, so that a caller can tell the provider's
time from the gateway's.
"""

import asyncio
import random
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from aiohttp import web
from typing_extensions import override

from tests.loopback import LocalServer
from tests.upstream import converse_events, openai_chunks
from tests.upstream.speakers import BEDROCK, OPENAI

Manner = Literal["answers", "refuses", "is slow", "is cut", "sends garbage", "fails"]
WORD: Final = "tk~ "
INPUT_TOKENS: Final = 9
_WORDS_MIN: Final = 4
_WORDS_MAX: Final = 24
_PAUSE_S: Final = 0.02
_SLOW_S: Final = 2.0
_MANNERS: Final[dict[Manner, int]] = {
    "answers": 84,
    "refuses": 4,
    "is slow": 4,
    "is cut": 3,
    "sends garbage": 3,
    "fails": 2,
}
_REFUSED_IN_AN_OUTAGE: Final = 0.8
_NUMBER: Final = re.compile(rb"#(\d+)#")
_STATUSES: Final = (500, 502, 503, 429)


@dataclass
class Arrival:
    """A request at the provider, in seconds of this machine's monotonic clock."""

    arrived_s: float
    attempts: int = 1
    first_sent_s: float = 0.0


class SoakProvider(LocalServer):
    """Serves `/v1/chat/completions` and Bedrock's ConverseStream on 127.0.0.1."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.outage = False
        self.arrivals: dict[int, Arrival] = {}
        self.counts: Counter[str] = Counter()
        self._draw = random.Random(seed)

    def _manner(self) -> Manner:
        if self.outage and self._draw.random() < _REFUSED_IN_AN_OUTAGE:
            return "refuses"
        return self._draw.choices(list(_MANNERS), list(_MANNERS.values()))[0]

    @override
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        found = _NUMBER.search(await request.read())
        number = int(found[1]) if found else -1
        seen = self.arrivals.get(number)
        if seen is None:
            seen = self.arrivals[number] = Arrival(arrived_s=time.monotonic())
        else:
            seen.attempts += 1
        manner = self._manner()
        self.counts[manner] += 1
        if manner == "refuses":
            message = {"message": "later", "error": {"message": "later"}}
            return web.json_response(message, status=self._draw.choice(_STATUSES))
        if manner == "is slow":
            await asyncio.sleep(_SLOW_S)
        return await self._stream(request, manner, seen)

    async def _stream(
        self, request: web.BaseRequest, manner: Manner, seen: Arrival
    ) -> web.StreamResponse:
        speaker = OPENAI if request.path.startswith("/v1/") else BEDROCK
        words = [WORD] * self._draw.randint(_WORDS_MIN, _WORDS_MAX)
        frames = _frames(speaker.name, words)
        if manner in ("is cut", "sends garbage", "fails"):
            frames = frames[: len(words) // 2]
            frames += {"is cut": [], "sends garbage": [speaker.garbage]}.get(
                manner, [speaker.error]
            )
        response = web.StreamResponse(headers=dict(speaker.headers))
        try:
            await response.prepare(request)
            seen.first_sent_s = time.monotonic()
            for frame in frames:
                await response.write(frame)
                await asyncio.sleep(_PAUSE_S)
            if manner == "is cut" and request.transport is not None:
                request.transport.abort()
                return response
            await response.write_eof()
        except ConnectionError:
            self.counts["left by the gateway"] += 1
        return response


def _frames(format_name: str, words: list[str]) -> list[bytes]:
    """Return the frames of an answer; its last ones, which need no pause, are one."""
    if format_name == OPENAI.name:
        used = openai_chunks.usage(INPUT_TOKENS, len(words))
        ended = [
            openai_chunks.sse(openai_chunks.chunk({}, finish="stop")),
            openai_chunks.sse(openai_chunks.chunk(usage=used)),
            openai_chunks.DONE,
        ]
        return [*OPENAI.begun(words), b"".join(ended)]
    ended = [
        converse_events.block_stop(),
        converse_events.message_stop(),
        converse_events.metadata(INPUT_TOKENS, len(words)),
    ]
    return [*BEDROCK.begun(words), b"".join(ended)]
