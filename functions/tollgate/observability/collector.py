"""An OpenTelemetry collector over HTTP."""

from typing import Final

import aiohttp

from tollgate.core.errors import LedgerError
from tollgate.core.secret import SecretReference
from tollgate.core.tracing import CollectorError
from tollgate.stores.base import SecretStore

_TIMEOUT_S: Final = 2.0
_CONNECT_TIMEOUT_S: Final = 1.0
_KEEPALIVE_S: Final = 30.0
_PATH: Final = "/v1/traces"


class OtlpCollector:
    """Implements `observability.otlp.Collector`; the pool belongs to the loop of the first call.

    `headers` names a secret with the headers that the collector requires, in the form of the
    variable OTEL_EXPORTER_OTLP_HEADERS: `name=value,name=value`.
    """

    def __init__(
        self, endpoint_url: str, secrets: SecretStore, headers: SecretReference | None
    ) -> None:
        self._url = endpoint_url.rstrip("/") + _PATH
        self._secrets = secrets
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    async def send(self, body: bytes) -> None:
        """Send once, without a retry: the next request would have to wait for it."""
        try:
            headers = {**await self._read_headers(), "content-type": "application/json"}
            async with self._open_session().post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as response:
                status = response.status
        except (aiohttp.ClientError, TimeoutError, LedgerError) as failed:
            raise CollectorError(type(failed).__name__) from failed
        if status != 200:
            raise CollectorError(f"HTTP {status}")

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _read_headers(self) -> dict[str, str]:
        if self._headers is None:
            return {}
        secret = await self._secrets.read(self._headers)
        if secret is None:
            raise CollectorError("its headers are not in Secrets Manager")
        pairs = [pair.partition("=") for pair in secret.split(",") if pair.strip()]
        return {name.strip(): value.strip() for name, _, value in pairs}

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(keepalive_timeout=_KEEPALIVE_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S, sock_connect=_CONNECT_TIMEOUT_S),
            )
        return self._session
