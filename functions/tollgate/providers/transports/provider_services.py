"""The services that transports and authorizations are made with."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tollgate.aws.sigv4 import Credentials
from tollgate.core.clock import Clock
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.stores.ports.base import SecretStore


class ProviderServices(Struct, frozen=True, kw_only=True):
    """The services that transports are built from."""

    pool: HttpPool
    secrets: SecretStore
    credentials: Callable[[], Credentials | None]
    """Returns None where there is no AWS identity."""
    aws_region: str
    """The region of that identity."""
    # The file of the environment's own Google credentials, which need not exist.
    google_file: Path | None
    clock: Clock
