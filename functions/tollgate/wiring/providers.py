"""Creates providers from the entries in routing.yaml, which name a format and a transport.

A transport's module is imported with the first entry that names the transport. Without an AWS
provider, no AWS code is imported.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.clock import Clock
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import LedgerError, MissingCredentials
from tollgate.core.principal import Principal
from tollgate.core.secret import CredentialPlace
from tollgate.providers.ports.background import ProviderBackground
from tollgate.providers.ports.base import (
    SIGNED_SERVICES,
    JobCalls,
    Provider,
    ProviderRow,
    Transport,
)
from tollgate.providers.ports.formats import (
    AWS_TRANSPORTS,
    BEDROCK_TRANSPORTS,
    TRANSPORT_NEEDS,
    WIRE_FORMATS,
)
from tollgate.providers.ports.provider_batches import BatchForm, ProviderBatches
from tollgate.providers.transports.authorization import (
    AWS_IDENTITY,
    GOOGLE_FILE,
    MakeTransport,
    ProviderServices,
    secret_of,
)
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings

_Entry = TypeVar("_Entry")


class RowError(ValueError):
    """Raised for a provider entry that names an unknown format or transport, or lacks a field."""


TRANSPORTS: Final[Mapping[str, DottedName[MakeTransport]]] = {
    "http_sse": DottedName("tollgate.providers.transports.http_sse:make_http_sse"),
    "bedrock_runtime": DottedName(
        "tollgate.providers.transports.bedrock_runtime:make_bedrock_runtime"
    ),
    "sagemaker_runtime": DottedName(
        "tollgate.providers.transports.sagemaker_runtime:make_sagemaker_runtime"
    ),
    "bedrock_invoke": DottedName("tollgate.providers.transports.invoke_frames:make_bedrock_invoke"),
    "simulator": DottedName("tollgate.providers.simulator.simulator:make_simulator"),
}


# Imported with the first batch, because most processes run none.
_BATCHES: Final[
    Mapping[BatchForm, DottedName[Callable[[ProviderRow, ProviderServices], ProviderBatches]]]
] = {
    "openai": DottedName("tollgate.providers.transports.batches.openai:make_openai_batches"),
    "anthropic": DottedName(
        "tollgate.providers.transports.batches.anthropic:make_anthropic_batches"
    ),
    "mistral": DottedName("tollgate.providers.transports.batches.mistral:make_mistral_batches"),
    "gemini": DottedName("tollgate.providers.transports.batches.gemini:make_gemini_batches"),
    "xai": DottedName("tollgate.providers.transports.batches.xai:make_xai_batches"),
    "bedrock": DottedName("tollgate.providers.transports.batches.bedrock:make_bedrock_batches"),
}
# Imported when the first job is submitted to a provider.
_JOB_CALLS: Final[Mapping[str, DottedName[Callable[[ProviderRow, ProviderServices], JobCalls]]]] = {
    "http_sse": DottedName("tollgate.providers.transports.job_calls:make_job_calls"),
    "simulator": DottedName("tollgate.providers.simulator.simulated_jobs:make_simulated_jobs"),
}
# Imported when the first background response is submitted to a provider.
_BACKGROUND: Final = DottedName[Callable[[ProviderRow, ProviderServices], ProviderBackground]](
    "tollgate.providers.transports.background:make_background"
)
# Returns a transport that signs in the session of a caller's team.
MakeSessionTransport = Callable[[ProviderRow, Principal, MakeTransport], Transport]
# Imported only by gateways that call Bedrock in sessions.
_WIRE_SESSIONS: Final = DottedName[
    Callable[[Settings, str, ProviderServices, Clock], MakeSessionTransport]
]("tollgate.wiring.role_sessions:wire_session_transports")
# Maximum number of cached pairs of a provider and a session.
_IN_SESSIONS_MAX: Final = 4000


class Registry:
    """Creates the provider for each entry, once.

    With `in_session`, each request to Bedrock is signed in a session of the caller's team.
    """

    def __init__(
        self, services: ProviderServices, in_session: MakeSessionTransport | None = None
    ) -> None:
        self._services = services
        self._providers: dict[ProviderRow, Provider] = {}
        self.in_session = in_session

    def provider(self, row: ProviderRow) -> Provider:
        """Return the provider for an entry; raise RowError if the entry is invalid."""
        provider = self._providers.get(row)
        if provider is None:
            wire_format = _named(WIRE_FORMATS, row.codec, f"codec of provider {row.slug}")
            transport = _named(TRANSPORTS, row.transport, f"transport of provider {row.slug}")
            _check_needs(row)
            provider = self._providers[row] = Provider(
                wire_format.make_codec(),
                transport()(row, self._services),
                wire_format.batch_codecs,
                wire_format.stream_codecs,
                self._batches(row),
                partial(self._make_background, row) if row.background else None,
                wire_format.job_codecs,
                partial(self._make_job_calls, row) if row.transport in _JOB_CALLS else None,
            )
        return provider

    def _batches(self, row: ProviderRow) -> Callable[[], ProviderBatches] | None:
        """Return the loader for a provider's batches; None if the deployment cannot use them."""
        terms = row.batch
        if terms is None or terms.find_lack(row.region, self._services.job_region) is not None:
            return None
        return partial(self._make_batches, row, terms.form)

    def _make_batches(self, row: ProviderRow, form: BatchForm) -> ProviderBatches:
        return _BATCHES[form]()(row, self._services)

    def _make_job_calls(self, row: ProviderRow) -> JobCalls:
        return _JOB_CALLS[row.transport]()(row, self._services)

    def _make_background(self, row: ProviderRow) -> ProviderBackground:
        return _BACKGROUND()(row, self._services)

    async def find_missing_key(self, row: ProviderRow) -> CredentialPlace | None:
        """Return the places where a provider's missing credentials could be set; None if none are
        missing.
        """
        if row.transport in AWS_TRANSPORTS or row.auth in SIGNED_SERVICES:
            return AWS_IDENTITY if self._services.credentials() is None else None
        if row.key is None:
            return self._find_missing_file() if row.auth == "google" else None
        try:
            await secret_of(row, self._services.secrets)
        except (MissingCredentials, LedgerError):
            return self._services.secrets.place(row.key)
        return None

    def _find_missing_file(self) -> CredentialPlace | None:
        file = self._services.google_file
        return None if file is not None and file.is_file() else GOOGLE_FILE


def _named(table: Mapping[str, _Entry], name: str, field: str) -> _Entry:
    if name not in table:
        raise RowError(f"{field}: {name!r} is not one of {', '.join(sorted(table))}")
    return table[name]


def _check_needs(row: ProviderRow) -> None:
    need = TRANSPORT_NEEDS.get(row.transport)
    if need is not None and getattr(row, need) is None:
        raise RowError(f"provider {row.slug}: transport {row.transport} needs {need}")
    if row.auth in SIGNED_SERVICES and row.region is None:
        raise RowError(f"provider {row.slug}: auth {row.auth} needs region")


def wire_registry(settings: Settings, services: ProviderServices, clock: Clock) -> Registry:
    """Return the registry, with sessions if the settings name a role for Bedrock."""
    role_arn = settings.bedrock_role_arn
    if role_arn is None:
        return Registry(services)
    return Registry(services, _WIRE_SESSIONS()(settings, role_arn, services, clock))


class CatalogProviders(Struct, frozen=True):
    """The providers of one catalog."""

    catalog: Catalog
    registry: Registry
    _found: dict[str, Provider] = field(default_factory=dict)
    """Providers by slug, because a lookup by row would hash every field for every request."""
    _in_sessions: dict[tuple[str, str, str | None], Provider] = field(default_factory=dict)
    """Providers by slug, workspace and team."""

    def provider(self, slug: str, principal: Principal) -> Provider:
        """Return the provider for the requests of a caller; raise KeyError if the catalog has none
        with this slug.
        """
        provider = self._found.get(slug)
        if provider is None:
            provider = self._found[slug] = self.registry.provider(self.catalog.providers[slug])
        make = self.registry.in_session
        if make is None:
            return provider
        row = self.catalog.providers[slug]
        if row.transport not in BEDROCK_TRANSPORTS and row.auth not in SIGNED_SERVICES:
            return provider
        place = (slug, principal.workspace_id, principal.team_id)
        in_session = self._in_sessions.get(place)
        if in_session is None:
            if len(self._in_sessions) >= _IN_SESSIONS_MAX:
                self._in_sessions.clear()
            in_session = replace(
                provider, transport=make(row, principal, TRANSPORTS[row.transport]())
            )
            self._in_sessions[place] = in_session
        return in_session
