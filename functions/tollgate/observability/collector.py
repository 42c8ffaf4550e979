"""The client of an OpenTelemetry collector over HTTP."""

import asyncio
from contextlib import closing
from typing import Final

from tollgate.core.errors import LedgerError
from tollgate.core.secret import SecretReference
from tollgate.core.tracing import CollectorError
from tollgate.http1.errors import HttpError
from tollgate.http1.pool import Pool
from tollgate.http1.request import USUAL_HEADERS, Request
from tollgate.stores.ports.base import SecretStore

_TIMEOUT_S: Final = 2.0
_CONNECT_TIMEOUT_S: Final = 1.0
_CONNECTIONS_MAX: Final = 100
_REPLY_BYTES_MAX: Final = 64 * 1024
_PATH: Final = "/v1/traces"


class OtlpCollector:
    """Implements `observability.otlp.Collector`; usable in the event loop of the first call only.

    `headers` names a secret with the headers that the collector requires, in the form of the
    variable OTEL_EXPORTER_OTLP_HEADERS: `name=value,name=value`.
    """

    def __init__(
        self, endpoint_url: str, secrets: SecretStore, headers: SecretReference | None
    ) -> None:
        self._url = endpoint_url.rstrip("/") + _PATH
        self._secrets = secrets
        self._headers = headers
        self._pool = Pool(_CONNECTIONS_MAX)

    async def send(self, body: bytes) -> None:
        """Send once, without a retry, which would delay the next export."""
        try:
            own = {"content-type": "application/json"}
            headers = {**USUAL_HEADERS, **await self._read_headers(), **own}
            request = Request(method="POST", url=self._url, headers=headers, body=(body,))
            async with asyncio.timeout(_TIMEOUT_S):
                with closing(await self._pool.send(request, connect_s=_CONNECT_TIMEOUT_S)) as reply:
                    status = reply.status
                    # The connection can be reused only after the whole body was read.
                    await reply.read_all(_REPLY_BYTES_MAX)
        except (HttpError, TimeoutError, LedgerError) as failed:
            raise CollectorError(type(failed).__name__) from failed
        if status != 200:
            raise CollectorError(f"HTTP {status}")

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        await self._pool.close()

    async def _read_headers(self) -> dict[str, str]:
        if self._headers is None:
            return {}
        secret = await self._secrets.read(self._headers)
        if secret is None:
            raise CollectorError("the collector's headers are not in Secrets Manager")
        pairs = [pair.partition("=") for pair in secret.split(",") if pair.strip()]
        return {name.strip(): value.strip() for name, _, value in pairs}
