"""The services that transports and authorizations need."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tollgate.aws.sigv4 import Credentials
from tollgate.core.clock import Clock
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.stores.ports.base import SecretStore


class ProviderServices(Struct, frozen=True, kw_only=True):
    """The services from which transports and authorizations are built."""

    pool: HttpPool
    secrets: SecretStore
    credentials: Callable[[], Credentials | None]
    """Returns the gateway's AWS credentials, None without any."""
    aws_region: str
    """The region of the gateway's AWS identity."""
    google_file: Path | None
    """The file with the environment's Google credentials, which may not exist; None if not set."""
    clock: Clock
