"""Background responses in OpenAI's form: created with `background`, polled, cancelled, deleted.

https://developers.openai.com/api/docs/guides/background (2026-11-28). The API has neither a list of
responses nor idempotency keys, so a request whose reply was lost cannot be found again. An answer
can be polled only if the provider stores it, so requests state `store`.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import MsgspecError, Struct, json
from pydantic_core import to_json

from tollgate.core.errors import MissingCredentials, UpstreamError
from tollgate.core.json_value import JsonValue
from tollgate.http1.errors import CannotConnect
from tollgate.providers.ports.background import ProviderBackground, ResponseGone
from tollgate.providers.ports.base import ProviderRow, UpstreamRefused
from tollgate.providers.ports.provider_batches import NotAccepted
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.batches.calls import ProviderCalls, make_calls

_RUNNING: Final = frozenset({"queued", "in_progress"})
_CANCELLED: Final = "cancelled"
# Ids of other forms are rejected, because the id becomes part of a path.
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
_NOT_FOUND: Final = 404
_SERVER_ERROR: Final = 500


class _Response(Struct):
    id: str = ""
    status: str = ""
    output: object = None
    usage: object = None


class BackgroundCalls:
    """Implements `ProviderBackground`."""

    def __init__(self, calls: ProviderCalls) -> None:
        self._calls = calls

    async def submit(
        self, path: str, body: Mapping[str, JsonValue], headers: Mapping[str, str]
    ) -> str:
        left_out = ("stream", "stream_options")
        fields: dict[str, JsonValue] = {
            **{name: value for name, value in body.items() if name not in left_out},
            "background": True,
            "store": True,
        }
        try:
            created = await self._calls.call(
                _Response, "POST", path, body=to_json(fields), headers=headers
            )
        except MissingCredentials as missing:
            raise NotAccepted from missing
        except UpstreamRefused as refused:
            raise NotAccepted from refused
        except UpstreamError as failure:
            if isinstance(failure.__cause__, CannotConnect):
                raise NotAccepted from failure
            raise
        if not _ID.fullmatch(created.id):
            raise self._calls.malformed(path)
        return created.id

    async def read(self, path: str, response_id: str) -> bytes | None:
        place = _place(path, response_id)
        try:
            content = await self._calls.read("GET", place)
            response = json.decode(content, type=_Response)
        except MsgspecError as invalid:
            raise self._calls.malformed(path) from invalid
        except UpstreamRefused as refused:
            if refused.status == _NOT_FOUND:
                raise ResponseGone from refused
            raise self._calls.as_failure(refused) from refused
        if response.status in _RUNNING:
            return None
        if response.status != _CANCELLED:
            return content
        return _as_incomplete(content) if response.usage or response.output else b""

    async def cancel(self, path: str, response_id: str) -> None:
        await self._calls.cancel(_place(path, response_id, "/cancel"))

    async def delete(self, path: str, response_id: str) -> None:
        try:
            await self._calls.read("DELETE", _place(path, response_id))
        except UpstreamRefused as refused:
            if refused.status != _NOT_FOUND:
                raise self._calls.as_failure(refused) from refused


def make_background(row: ProviderRow, services: ProviderServices) -> ProviderBackground:
    """Return the client for a provider's background mode."""
    return BackgroundCalls(make_calls(row, services))


def _place(path: str, response_id: str, action: str = "") -> str:
    path, _, query = path.partition("?")
    return f"{path}/{response_id}{action}" + (f"?{query}" if query else "")


def _as_incomplete(content: bytes) -> bytes:
    """Return a cancelled response as an incomplete one, with its output and usage."""
    response = json.decode(content, type=dict[str, object])
    details = {"reason": _CANCELLED}
    return json.encode({**response, "status": "incomplete", "incomplete_details": details})
