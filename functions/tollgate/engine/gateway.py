"""The services that a generation uses, and the call that it serves."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Protocol

from msgspec import Struct, field

from tollgate.core.clock import Clock, Deadline
from tollgate.core.documents.reading import DocumentReader, TextRecognizer
from tollgate.core.files.stored import FoundFile
from tollgate.core.ids import IdSource
from tollgate.core.principal import Admission, Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.routing.endpoint_status import CooldownPolicy
from tollgate.core.tracing import PlatformIds
from tollgate.ingress.base import ParsedWork
from tollgate.providers.ports.base import MediaFetcher, Provider
from tollgate.routing.planning.planner import Planner
from tollgate.stores.ports.base import CooldownStore, Ledger
from tollgate.tools.ports.base import ServerTools


class ProviderDirectory(Protocol):
    """Providers by their slug in the catalog."""

    def provider(self, slug: str) -> Provider:
        """Return the provider; raise KeyError if the catalog has no provider with that slug."""


class StreamTiming(Struct, frozen=True, kw_only=True):
    """Limits on a caller's wait, in seconds."""

    early_commit_after_s: float = 10.0
    """Silence after which a stream replies 200 with a first keep-alive; 0 means never."""
    keep_alive_s: float = 15.0
    """Silence after which a stream that has begun gets another keep-alive."""
    non_streamed_total_s: float = 285.0
    """Limit of a reply that is not streamed: API Gateway drops connections idle for 300 s."""


class Journal(Protocol):
    """The log of outcomes: generations, cooldowns, catalogs and defects."""

    def settled(self, record: GenerationRecord) -> None:
        """Log a generation that ended and whose record is stored."""

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        """Log a generation whose record could not be stored; this line is its only trace."""

    def endpoint_cooled_down(self, endpoint_id: str) -> None:
        """Log that an endpoint enters its cooldown."""

    def catalog_rejected(self, what: str, failure: Exception, *, serving: str) -> None:
        """Log why (`what`) a published catalog cannot be served; the catalog `serving` stays."""

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        """Log an exception that is a defect of Tollgate."""


class FileReader(Protocol):
    """Reads the uploaded files of all workspaces."""

    async def find(self, workspace_id: str, file_id: str) -> FoundFile | None:
        """Return a file of this workspace whose content has arrived; None if there is none.

        Raises RequestError for a file whose content is not what was announced, and LedgerError
        while files cannot be reached.
        """

    async def read(self, place: str) -> bytes | None:
        """Return the content under a key, None if it is gone; raise LedgerError on failure."""


class Gateway(Struct, frozen=True, kw_only=True):
    """The collaborators of `generate`, chosen by the wiring."""

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
    tools: ServerTools | None = None
    """The tools that the gateway runs; None if routing.yaml configures none."""
    files: FileReader | None = None
    """None if uploaded files are not supported."""
    reader: DocumentReader | None = None
    """None if documents are left to models that read them."""
    recognizer: TextRecognizer | None = None
    """None if no service recognizes scanned pages."""


class Call(Struct, frozen=True, kw_only=True):
    """One authenticated, parsed request."""

    principal: Principal
    parsed: ParsedWork
    request_id: str
    """The id tried first for the hold; if a hold already has it, another id is made."""
    deadline: Deadline
    """The end of the invocation, minus the time that settling may take."""
    ingress_format: str
    """The name of the client format in `ingress.formats`."""
    client_request_id: str | None = None
    """The caller's own id of the request (`x-request-id`)."""
    platform_ids: PlatformIds = PlatformIds()
    """The platform's own ids of the request."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that the caller stated about itself."""
    fallbacks: bool = True
    """False if only the first model of the chain may serve."""
