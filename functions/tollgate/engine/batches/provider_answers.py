"""Lets the engine process an answer that a provider has already given, under an existing hold."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.errors import UpstreamError
from tollgate.core.limits import TierLimits
from tollgate.core.principal import Principal
from tollgate.core.routing.endpoint_status import (
    AnswerTime,
    CooldownPolicy,
    KeyFault,
    KeyNote,
    Speed,
)
from tollgate.engine.gateway import Gateway, ProviderDirectory
from tollgate.engine.recent_refusals import RecentRefusals
from tollgate.providers.ports.base import (
    Frame,
    Provider,
    ReadyRequest,
    Timeouts,
    UpstreamRefused,
    WireRequest,
)
from tollgate.routing.planning.batch_planner import BatchPlanner
from tollgate.stores.ports.base import Hold

_OK: Final = 200


class GivenAnswer(Struct, frozen=True):
    """A provider's unparsed answer."""

    status: int
    """The HTTP status; 0 if the request did not run."""
    body: bytes


def with_answer(
    gateway: Gateway, planner: BatchPlanner, answer: GivenAnswer | UpstreamError
) -> Gateway:
    """Return a gateway whose providers send nothing, but return the answer or raise the error.

    Refusals of the key's other requests are not repeated, because the money is held already and
    the provider has to be paid.
    """
    return replace(
        gateway,
        planner=planner,
        refusals=RecentRefusals(),
        providers=_AnsweredProviders(gateway.providers, answer),
        cooldowns=_UnreportedEndpoints(),
    )


def without_rules(principal: Principal) -> Principal:
    """Return a principal whose settings refuse nothing.

    Its rules applied when the request was submitted. Those that were added since must not make an
    answer free that the provider bills.
    """
    return replace(
        principal,
        tier=None,
        models=None,
        levels=(),
        cost_max_nano_usd=None,
        session_nano_usd=None,
        session_requests_max=None,
        key_quotas=(),
        key_policy=None,
        key_guardrails=None,
    )


class HeldPart:
    """A ledger's methods for holds, for a generation whose money the submission holds already."""

    def __init__(self, whole: Hold) -> None:
        self._whole = whole

    async def hold(
        self,
        principal: Principal,
        amount_nano_usd: int,
        first_id: str | None = None,
        **_: object,
    ) -> Hold:
        """Return a part of the submission's hold, without writing anything or checking limits."""
        return replace(
            self._whole,
            id=first_id or self._whole.id,
            wallet_nano_usd=amount_nano_usd,
            key_nano_usd=amount_nano_usd,
            covered=False,
        )

    def budget_left_percent(
        self, principal: Principal, *, tier: TierLimits | None = None
    ) -> int | None:
        return None

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        return hold


class _AnsweredProviders(Struct, frozen=True):
    """The providers of a catalog, all of which reply with the same given answer."""

    directory: ProviderDirectory
    answer: GivenAnswer | UpstreamError

    def provider(self, slug: str, principal: Principal) -> Provider:
        known = self.directory.provider(slug, principal)
        return Provider(
            known.codec, _AnswerTransport(self.answer), known.batch_codecs, known.stream_codecs
        )


class _AnswerTransport:
    """A transport that sends nothing, and returns the given answer."""

    def __init__(self, answer: GivenAnswer | UpstreamError) -> None:
        self._answer = answer

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        return ReadyRequest(lambda: self.open(request, timeouts), lambda: None)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        answer = self._answer
        if isinstance(answer, UpstreamError):
            raise answer
        if answer.status != _OK:
            raise UpstreamRefused(answer.status, {}, answer.body)
        yield self._frames(answer.body)

    async def _frames(self, body: bytes) -> AsyncIterator[Sequence[Frame]]:
        yield (Frame(data=body),)


class _UnreportedEndpoints:
    """An empty cooldown store: given answers say nothing about interactive requests."""

    async def find_resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        return {}

    async def count_failure(
        self, endpoint_id: str, policy: CooldownPolicy, fault: KeyFault | None = None
    ) -> bool:
        return False

    async def begin_probe(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        return True

    async def release_probe(self, endpoint_id: str) -> None:
        """Ignore the endpoint."""

    def awaits_answer(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        return False

    async def note_recovery(self, endpoint_id: str, policy: CooldownPolicy) -> None:
        """Ignore the endpoint."""

    async def find_key_notes(self, endpoint_ids: Collection[str]) -> Mapping[str, KeyNote]:
        return {}

    def add_answer(self, endpoint_id: str, times: AnswerTime) -> bool:
        return False

    async def write_speed(self, endpoint_id: str) -> None:
        """Ignore the endpoint."""

    async def find_speeds(self, endpoint_ids: Collection[str]) -> Mapping[str, Speed]:
        return {}
