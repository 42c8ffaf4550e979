"""Parts of a gateway whose providers have answered a request already."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from tollgate.core.principal import Principal
from tollgate.core.routing.endpoint_status import (
    AnswerTime,
    CooldownPolicy,
    KeyFault,
    KeyNote,
    Speed,
)
from tollgate.engine.gateway import ProviderDirectory
from tollgate.providers.ports.base import Provider, Transport


class AnsweredProviders(Struct, frozen=True):
    """The providers of a catalog, which receive every answer from one transport."""

    directory: ProviderDirectory
    transport: Transport

    def provider(self, slug: str, principal: Principal) -> Provider:
        known = self.directory.provider(slug, principal)
        return Provider(known.codec, self.transport, known.batch_codecs, known.stream_codecs)


class UnreportedEndpoints:
    """A cooldown store without entries: jobs say nothing about interactive requests."""

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
