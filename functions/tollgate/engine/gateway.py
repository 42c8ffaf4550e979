"""What a generation is served with."""

from decimal import Decimal
from typing import Protocol

from msgspec import Struct

from tollgate.core.clock import Clock, Deadline
from tollgate.core.cooldown import CooldownPolicy
from tollgate.core.generation import GenerationRecord
from tollgate.core.ids import IdSource
from tollgate.core.principal import Admission, Principal
from tollgate.ingress.base import ParsedCall
from tollgate.providers.base import MediaFetcher, Provider
from tollgate.routing.planning.planner import Planner
from tollgate.stores.base import CooldownStore, Ledger


class ProviderDirectory(Protocol):
    """Providers by their slug in the catalog."""

    def provider(self, slug: str) -> Provider:
        """The provider; KeyError if the catalog has none of that name."""


class StreamTiming(Struct, frozen=True, kw_only=True):
    """How long a caller waits for what, in seconds.

    After `early_commit_after_s` of silence a stream answers 200 and a keep-alive (0: never), then
    one every `keep_alive_s`. A whole answer that takes longer than `non_streamed_total_s` is given
    up, since a Regional API drops a connection idle for 300 s.
    """

    early_commit_after_s: float = 10.0
    keep_alive_s: float = 15.0
    non_streamed_total_s: float = 285.0


class Journal(Protocol):
    """Where it is written down how generations went."""

    def settled(self, record: GenerationRecord) -> None:
        """A generation ended and is accounted for."""

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        """A generation ended but its record could not be kept: this line is all there is of it."""

    def endpoint_cooled_down(self, endpoint_id: str) -> None:
        """An endpoint begins to rest."""

    def catalog_rejected(self, what: str, failure: Exception, *, serving: str) -> None:
        """What is published cannot be served; the catalog `serving` stays."""

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        """Something of ours broke."""


class Gateway(Struct, frozen=True, kw_only=True):
    """Everything that `generate` needs, chosen by the wiring."""

    ledger: Ledger
    cooldowns: CooldownStore
    cooldown: CooldownPolicy
    planner: Planner
    providers: ProviderDirectory
    media: MediaFetcher
    clock: Clock
    ids: IdSource
    journal: Journal
    timing: StreamTiming
    credits_per_usd: Decimal
    admission: Admission = "positive"


class Call(Struct, frozen=True, kw_only=True):
    """One authenticated, parsed request.

    `request_id` is the id tried first for the hold; `deadline` is when the platform ends us, less
    what settling may take.
    """

    principal: Principal
    parsed: ParsedCall
    request_id: str
    deadline: Deadline
    ingress_format: str
    client_request_id: str | None = None
    fallbacks: bool = True
