"""A scripted provider with a background mode for responses."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from tests.background import Waiting, open_waiting
from tests.scripted import Scripted, frame
from tests.unit.routing.catalogs import endpoint, model, provider
from tollgate.core.background import BackgroundResponse
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.json_value import JsonValue
from tollgate.core.principal import Principal
from tollgate.engine.gateway import ProviderDirectory
from tollgate.providers.ports.background import ProviderBackground, ResponseGone
from tollgate.providers.ports.base import Provider
from tollgate.providers.ports.formats import codec_of
from tollgate.providers.ports.provider_batches import NotAccepted

# 9 + 3 tokens, at 1 and 2 USD a million.
COST_NANO_USD = 15_000
USAGE = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}


def said(text: str = "Hello", **changes: Any) -> dict[str, Any]:
    """Return a response of the provider that has ended."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "id": "resp_theirs0",
        "object": "response",
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": content}],
        "usage": USAGE,
        **changes,
    }


@dataclass
class ScriptedRuns:
    """Implements `ProviderBackground`: responses run for a time, or until they are cancelled."""

    runs_s: float = 3_600.0
    answer: Mapping[str, Any] = field(default_factory=said)
    after_cancelling: bytes = b""
    refuses: bool = False
    loses_replies: bool = False
    submitted: list[Mapping[str, JsonValue]] = field(default_factory=list)
    stored: dict[str, float] = field(default_factory=dict)
    """The ended form of each response that the provider has."""
    cancelled: set[str] = field(default_factory=set)
    polls: int = 0

    async def submit(
        self, path: str, body: Mapping[str, JsonValue], headers: Mapping[str, str]
    ) -> str:
        assert path == "/responses"
        if self.refuses:
            raise NotAccepted from ValueError("no background today")
        id_ = f"theirs-{len(self.submitted)}"
        self.submitted.append(body)
        self.stored[id_] = asyncio.get_running_loop().time() + self.runs_s
        if self.loses_replies:
            raise UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "The connection broke.")
        return id_

    async def read(self, path: str, response_id: str) -> bytes | None:
        self.polls += 1
        if response_id not in self.stored:
            raise ResponseGone
        if response_id in self.cancelled:
            return self.after_cancelling
        if self.stored[response_id] > asyncio.get_running_loop().time():
            return None
        return json.dumps(self.answer).encode()

    async def cancel(self, path: str, response_id: str) -> None:
        if self.stored[response_id] > asyncio.get_running_loop().time():
            self.cancelled.add(response_id)

    async def delete(self, path: str, response_id: str) -> None:
        self.stored.pop(response_id, None)


@dataclass(frozen=True)
class RunningDirectory:
    """The providers of a house; `near` has a background mode."""

    directory: ProviderDirectory
    runs: ProviderBackground

    def provider(self, slug: str, principal: Principal) -> Provider:
        found = self.directory.provider(slug, principal)
        return replace(found, background=lambda: self.runs) if slug == "near" else found


async def open_running(runs: ProviderBackground, **sections: Any) -> Waiting:
    """Return a gateway whose first provider has a background mode; `far` is its fallback."""
    near = provider(codec="openai_responses")
    waiting = await open_waiting(
        Scripted([frame(said("By the gateway."))]),
        **{
            "codec": codec_of("openai_responses"),
            "far": Scripted([frame(said("From afar."))]),
            "providers": {"near": near, "far": provider(codec="openai_responses")},
            "models": {"acme/small": model(endpoint("near", "small-1"))},
            "aliases": {},
            "routes": {},
            **sections,
        },
    )
    gateway = waiting.home.gateway
    directory = RunningDirectory(gateway.providers, runs)
    waiting.home.gateway = replace(gateway, providers=directory)
    return waiting


async def asked(waiting: Waiting, **fields: Any) -> str:
    """Return the id of a response that waits."""
    reply = await waiting.ask(**fields)
    assert reply.status == 200, reply.body
    return str(reply.json["id"])


async def check_once(waiting: Waiting, id_: str, text: str = "Hello") -> BackgroundResponse:
    """Assert that the response is complete, and recorded and billed exactly once."""
    job = await waiting.job(id_)
    assert (job.status, job.run, job.tries) == ("completed", None, ()), job
    [billed] = [record for record in waiting.records if record.outcome == "ok"]
    assert billed.id == job.generation_id
    assert waiting.home.spent_nano_usd == billed.cost_nano_usd == COST_NANO_USD
    shown = (await waiting.call("GET", id_)).json
    assert (shown["id"], shown["output"][0]["content"][0]["text"]) == (id_, text)
    return job
