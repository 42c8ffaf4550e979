"""The protocol of a provider that runs responses in background itself."""

from collections.abc import Mapping
from typing import Protocol

from tollgate.core.json_value import JsonValue


class ResponseGone(Exception):
    """Raised if a provider no longer has a response."""


class ProviderBackground(Protocol):
    """The background responses of one provider row; each method raises UpstreamError on failure.

    `path` is the path of the provider's responses, relative to the provider's base URL.
    """

    async def submit(
        self, path: str, body: Mapping[str, JsonValue], headers: Mapping[str, str]
    ) -> str:
        """Submit a request, and return the provider's id of the response.

        Raises NotAccepted if the provider certainly runs nothing. After any other failure, nothing
        shows whether the request was accepted.
        """

    async def read(self, path: str, response_id: str) -> bytes | None:
        """Return a response that has ended as JSON; None while it runs.

        A cancelled response is returned as an incomplete one; it is empty if it used nothing.
        Raises ResponseGone if there is no such response.
        """

    async def cancel(self, path: str, response_id: str) -> None:
        """Ask the provider to end a response; ignore an ended one."""

    async def delete(self, path: str, response_id: str) -> None:
        """Delete a response at the provider; ignore a missing one."""
