"""A provider that runs batches of its own, as a test has written it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from tests.batches import Fate, Works, batch_of
from tests.gateways import House, house
from tests.unit.routing.catalogs import provider
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.principal import Principal
from tollgate.engine.gateway import ProviderDirectory
from tollgate.providers.ports.base import Codec, Provider
from tollgate.providers.ports.provider_batches import (
    BatchedAnswer,
    BatchedRequest,
    BatchState,
    NotAccepted,
    ProviderBatches,
)

TERMS = {"form": "openai", "percent": 50, "source": "made up", "checked": "2026-11-21"}
# A whole reply in 10 + 2 tokens, at 3 and 15 USD a million: 60,000 nano-dollars, half in a batch.
HALF_NANO_USD = 30_000


def reply(text: str = "Hello") -> bytes:
    """A chat completion as a provider answers it without a stream."""
    message = {"role": "assistant", "content": text}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "large-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
    return json.dumps(body).encode()


def answered(request: BatchedRequest) -> Sequence[BatchedAnswer]:
    """Say hello to a request."""
    return [BatchedAnswer(custom_id=request.custom_id, status=200, body=reply())]


@dataclass
class ScriptedBatches:
    """Implements `ProviderBatches`: batches run for a time, or until they are cancelled."""

    runs_s: float = 3_600.0
    answer: Callable[[BatchedRequest], Sequence[BatchedAnswer]] = answered
    refuses: bool = False
    fails: bool = False
    """Whether a batch is accepted, and then none of its requests runs."""
    loses_replies: bool = False
    accepted: dict[str, tuple[str, float, Sequence[BatchedRequest]]] = field(default_factory=dict)
    ended_s: dict[str, float] = field(default_factory=dict)
    polls: int = 0

    async def submit(self, name: str, requests: Sequence[BatchedRequest], *, folder: str) -> str:
        if self.refuses:
            raise NotAccepted from ValueError("no batches today")
        batch_id = f"theirs-{len(self.accepted)}"
        now_s = asyncio.get_running_loop().time()
        self.accepted[batch_id] = (name, now_s, requests)
        self.ended_s[batch_id] = now_s + self.runs_s
        if self.loses_replies:
            raise UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "The connection broke.")
        return batch_id

    async def find(self, name: str, *, since_s: float, count: int) -> str | None:
        for batch_id, (its_name, _, requests) in self.accepted.items():
            if its_name == name:
                assert len(requests) == count
                return batch_id
        return None

    async def get_state(self, batch_id: str) -> BatchState:
        self.polls += 1
        if self.ended_s[batch_id] > asyncio.get_running_loop().time():
            return "running"
        return "refused" if self.fails else "ended"

    async def read_answers(self, batch_id: str) -> AsyncGenerator[BatchedAnswer, None]:
        for request in self.accepted[batch_id][2]:
            for answer in self.answer(request):
                yield answer

    async def cancel(self, batch_id: str) -> None:
        now_s = asyncio.get_running_loop().time()
        self.ended_s[batch_id] = min(self.ended_s[batch_id], now_s)

    @property
    def requests(self) -> list[BatchedRequest]:
        """All requests that were accepted."""
        return [request for _, _, requests in self.accepted.values() for request in requests]


@dataclass(frozen=True)
class BatchingDirectory:
    """The providers of a house, of which `near` runs batches."""

    directory: ProviderDirectory
    batches: ProviderBatches
    codec: Codec | None = None
    """The codec of `near`, if it is not OpenAI's."""

    def provider(self, slug: str, principal: Principal) -> Provider:
        found = self.directory.provider(slug, principal)
        if slug != "near":
            return found
        return replace(found, batches=lambda: self.batches, codec=self.codec or found.codec)


async def batching_house(batches: ProviderBatches, **sections: Any) -> House:
    """A house whose first provider runs batches at half price."""
    providers = {"near": provider(batch=TERMS), "far": provider()}
    home = await house(**{"providers": providers, **sections})
    directory = BatchingDirectory(home.gateway.providers, batches)
    home.gateway = replace(home.gateway, providers=directory)
    return home


async def submitted_batch(
    batches: ScriptedBatches, lines: Sequence[dict[str, Any]], **sections: Any
) -> Works:
    """A batch of which the provider gets the lines."""
    return await batch_of(await batching_house(batches, **sections), lines)


class MortalWorks:
    """Works whose worker meets a fate at a call to a store or to the provider."""

    def __init__(self, works: Works, batches: ScriptedBatches) -> None:
        self.works = works
        self._batches = batches

    async def run(self, fate: Fate) -> None:
        """Work with one process until the batch or the process ends."""
        home = self.works.home
        before = home.gateway
        directory = BatchingDirectory(before.providers, fate.over(self._batches))
        home.gateway = replace(before, providers=directory)
        worker = self.works.worker(fate=fate)
        home.gateway = before
        await self.works.run(worker, time_s=90_000)
