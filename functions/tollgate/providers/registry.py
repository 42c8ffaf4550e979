"""Providers made of the rows of routing.yaml: a format and a transport, each looked up by name.

Loaders import what they load, so that a deployment without an AWS provider imports nothing for one.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct, field

from tollgate.aws.sigv4 import Credentials
from tollgate.core.clock import Clock
from tollgate.core.errors import LedgerError, MissingCredentials
from tollgate.core.secret import CredentialPlace
from tollgate.providers.base import Auth, Provider, ProviderRow, Transport
from tollgate.providers.formats import AWS_TRANSPORTS, TRANSPORT_NEEDS, WIRE_FORMATS
from tollgate.providers.transports.authorization import Authorization, KeyHeader, secret_of
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.routing.planning.catalog import Catalog
from tollgate.stores.base import SecretStore


class ProviderServices(Struct, frozen=True, kw_only=True):
    """The services that transports are built from."""

    pool: HttpPool
    secrets: SecretStore
    # Returns None where there is no AWS identity.
    credentials: Callable[[], Credentials | None]
    # The region of that identity.
    aws_region: str
    # The file of the environment's own Google credentials, which need not exist.
    google_file: Path | None
    clock: Clock


_Entry = TypeVar("_Entry")


class RowError(ValueError):
    """A provider row names an unknown format or transport, or lacks a field of its transport."""


def _key_header(row: ProviderRow, services: ProviderServices) -> Authorization:
    return KeyHeader(row, services.secrets)


def _google_token(row: ProviderRow, services: ProviderServices) -> Authorization:
    from tollgate.providers.transports.aws_identity import required_credentials
    from tollgate.providers.transports.google_credentials import AwsRole
    from tollgate.providers.transports.google_token import GoogleToken

    identity = required_credentials(row.slug, services.credentials)
    role = AwsRole(identity, services.aws_region)
    return GoogleToken(row, services.secrets, services.clock, file=services.google_file, role=role)


def _http_sse(row: ProviderRow, services: ProviderServices) -> Transport:
    from tollgate.providers.transports.http_sse import HttpSse

    return HttpSse(row, services.pool, AUTHORIZATIONS[row.auth](row, services))


def _bedrock_runtime(row: ProviderRow, services: ProviderServices) -> Transport:
    from tollgate.providers.transports.bedrock_runtime import BedrockRuntime

    return BedrockRuntime(row, services.pool, services.credentials, services.clock)


def _sagemaker_runtime(row: ProviderRow, services: ProviderServices) -> Transport:
    from tollgate.providers.transports.sagemaker_runtime import SageMakerRuntime

    return SageMakerRuntime(row, services.pool, services.credentials, services.clock)


def _bedrock_invoke(row: ProviderRow, services: ProviderServices) -> Transport:
    from tollgate.providers.transports.bedrock_runtime import BedrockRuntime
    from tollgate.providers.transports.invoke_frames import InvokeFrames

    return BedrockRuntime(
        row, services.pool, services.credentials, services.clock, frames=InvokeFrames
    )


def _simulator(row: ProviderRow, services: ProviderServices) -> Transport:
    from tollgate.providers.transports.simulator import Simulator

    return Simulator(services.clock)


AUTHORIZATIONS: Final[Mapping[Auth, Callable[[ProviderRow, ProviderServices], Authorization]]] = {
    "bearer": _key_header,
    "api-key": _key_header,
    "x-api-key": _key_header,
    "x-goog-api-key": _key_header,
    "google": _google_token,
}
TRANSPORTS: Final[Mapping[str, Callable[[ProviderRow, ProviderServices], Transport]]] = {
    "http_sse": _http_sse,
    "bedrock_runtime": _bedrock_runtime,
    "sagemaker_runtime": _sagemaker_runtime,
    "bedrock_invoke": _bedrock_invoke,
    "simulator": _simulator,
}


class Registry:
    """Makes providers of rows, each once."""

    def __init__(self, services: ProviderServices) -> None:
        self._services = services
        self._made: dict[ProviderRow, Provider] = {}

    def provider(self, row: ProviderRow) -> Provider:
        """Return the provider of a row; RowError for a row that cannot be made."""
        made = self._made.get(row)
        if made is None:
            wire_format = _named(WIRE_FORMATS, row.codec, f"codec of provider {row.slug}")
            transport = _named(TRANSPORTS, row.transport, f"transport of provider {row.slug}")
            _check_needs(row)
            codec = wire_format.load() if wire_format.load is not None else None
            carrier = transport(row, self._services)
            made = self._made[row] = Provider(
                codec, carrier, wire_format.batch_codecs, wire_format.stream_codecs
            )
        return made

    async def find_missing_key(self, row: ProviderRow) -> CredentialPlace | None:
        """Return where a row's credentials are missing; None if it has some or needs none."""
        if row.transport in AWS_TRANSPORTS:
            from tollgate.providers.transports.aws_identity import AWS_IDENTITY

            return AWS_IDENTITY if self._services.credentials() is None else None
        if row.key is None:
            return self._find_missing_file() if row.auth == "google" else None
        try:
            await secret_of(row, self._services.secrets)
        except (MissingCredentials, LedgerError):
            return self._services.secrets.place(row.key)
        return None

    def _find_missing_file(self) -> CredentialPlace | None:
        from tollgate.providers.transports.google_token import DEFAULT_CREDENTIALS

        file = self._services.google_file
        return None if file is not None and file.is_file() else DEFAULT_CREDENTIALS


def _named(table: Mapping[str, _Entry], name: str, what: str) -> _Entry:
    if name not in table:
        raise RowError(f"{what}: {name!r} is none of {', '.join(sorted(table))}")
    return table[name]


def _check_needs(row: ProviderRow) -> None:
    need = TRANSPORT_NEEDS.get(row.transport)
    if need is not None and getattr(row, need) is None:
        raise RowError(f"provider {row.slug}: transport {row.transport} needs {need}")


class CatalogProviders(Struct, frozen=True):
    """The providers of one catalog."""

    catalog: Catalog
    registry: Registry
    # By slug, for a row is hashed field by field, at every request.
    _found: dict[str, Provider] = field(default_factory=dict)

    def provider(self, slug: str) -> Provider:
        """Return the provider; raise KeyError if the catalog has none of that slug."""
        found = self._found.get(slug)
        if found is None:
            found = self._found[slug] = self.registry.provider(self.catalog.providers[slug])
        return found
