"""The services that a generation needs, and the caller's request."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.buffer_budget import ProcessBuffers
from tollgate.core.clock import Clock, Deadline
from tollgate.core.documents.reading import DocumentReader, TextRecognizer
from tollgate.core.files.stored import FoundFile
from tollgate.core.ids import IdSource
from tollgate.core.limits import CostCeiling, SessionLimit
from tollgate.core.ownership import UNOWNED, OwnerScope
from tollgate.core.principal import Admission, Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.routing.endpoint_status import CooldownPolicy
from tollgate.core.tracing import PlatformIds
from tollgate.engine.recent_refusals import RecentRefusals
from tollgate.engine.side_thread import Computations, SideThread
from tollgate.ingress.base import ParsedWork
from tollgate.providers.ports.base import MediaFetcher, Provider
from tollgate.routing.planning.planner import Planner
from tollgate.stores.ports.base import Admissions, AnswerCache, CooldownStore, Ledger
from tollgate.tools.ports.base import ServerTools


class ProviderDirectory(Protocol):
    """Providers by their slug in the catalog."""

    def provider(self, slug: str, principal: Principal) -> Provider:
        """Return the provider for a caller's requests; raise KeyError for an unknown slug."""


class StreamTiming(Struct, frozen=True, kw_only=True):
    """Limits on a caller's wait, in seconds."""

    early_commit_after_s: float = 10.0
    """Seconds of silence after which a stream sends status 200 and a keep-alive; 0 means never."""
    keep_alive_s: float = 15.0
    """Seconds of silence after which a stream that has started sends another keep-alive."""
    non_streamed_total_s: float = 285.0
    """Time limit for a non-streamed reply; API Gateway drops connections that are idle
    for 300 s.
    """


class Journal(Protocol):
    """Log of generations, cooldowns, rejected catalogs and defects."""

    def settled(self, record: GenerationRecord) -> None:
        """Log a generation whose record is stored."""

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        """Log a generation whose record could not be stored; the log is the only trace."""

    def endpoint_cooled_down(self, endpoint_id: str) -> None:
        """Log that an endpoint enters its cooldown."""

    def catalog_rejected(self, what: str, failure: Exception, *, serving: str) -> None:
        """Log that a published catalog cannot be used, for the reason `what`, so the catalog
        `serving` stays in use.
        """

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        """Log an exception that is a defect in Tollgate."""


class FileReader(Protocol):
    """Reads the uploaded files of all workspaces."""

    async def find(self, workspace_id: str, file_id: str) -> FoundFile | None:
        """Return a workspace's uploaded file; None if there is no such file.

        Raises RequestError if the content differs from what was announced, and
        LedgerError while the file store is unavailable.
        """

    async def read(self, place: str) -> bytes | None:
        """Return the content at a storage key; None if deleted; raise LedgerError on failure."""


class Gateway(Struct, frozen=True, kw_only=True):
    """Services that `generate` uses, chosen by the wiring."""

    ledger: Ledger
    admissions: Admissions
    cooldowns: CooldownStore
    cooldown: CooldownPolicy
    planner: Planner
    providers: ProviderDirectory
    media: MediaFetcher
    clock: Clock
    ids: IdSource
    journal: Journal
    timing: StreamTiming
    side: SideThread
    credits_per_usd: Decimal
    buffers: ProcessBuffers = field(default_factory=ProcessBuffers)
    """Budget of the bytes that requests buffer."""
    refusals: RecentRefusals = field(default_factory=RecentRefusals)
    """The latest refusals of keys, which are repeated without asking the store."""
    admission: Admission = "positive"
    tools: ServerTools | None = None
    """Tools that the gateway runs; None if routing.yaml configures none."""
    answer_cache: AnswerCache | None = None
    """Store of answers for identical requests; None if there is none."""
    files: FileReader | None = None
    """Reader of uploaded files; None if files are not supported."""
    reader: DocumentReader | None = None
    """Reader of documents; None if only models read documents."""
    recognizer: TextRecognizer | None = None
    """OCR service; None if none is configured."""

    def as_candidate(self) -> "Gateway":
        """Return the gateway for requests that get its catalog as a candidate."""
        return replace(self, planner=Planner(self.planner.catalog.as_candidate()))

    def computations(self, call: "Call") -> Computations:
        """Return the runner for the computations of a call."""
        return Computations(self.side, call.principal.workspace_id, call.is_large)


class Call(Struct, frozen=True, kw_only=True):
    """One authenticated, parsed request."""

    principal: Principal
    reach: OwnerScope = UNOWNED
    """The stored objects that the request may refer to."""
    parsed: ParsedWork
    request_id: str
    """The id to try first for the hold; if another hold already has this id, a new one is
    generated.
    """
    deadline: Deadline
    """End of the invocation, minus the time reserved for settling."""
    ingress_format: str
    """Name of the client format in `ingress.formats`."""
    client_request_id: str | None = None
    """Caller's own id for the request (`x-request-id`)."""
    platform_ids: PlatformIds = PlatformIds()
    """Ids that API Gateway and Lambda gave to the request."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that the caller sent with the request."""
    ceilings: tuple[CostCeiling, ...] = ()
    """The cost ceilings from the request and from its session's limit."""
    session: SessionLimit | None = None
    """Limit of the request's session; None if neither key nor request limits sessions."""
    cache_control: str = ""
    """Value of the request's Cache-Control header."""
    fallbacks: bool = True
    """False if only the first model of the chain may serve the request."""
    is_large: bool = False
    """True if a pass over the whole request may take more than a few milliseconds."""
