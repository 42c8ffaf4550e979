"""The protocol for providers with a background mode for responses."""

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

        Raises NotAccepted if it is certain that the provider does not run the request. After any
        other error, the provider may have accepted it.
        """

    async def read(self, path: str, response_id: str) -> bytes | None:
        """Return the JSON of a response that has ended; None while it runs.

        A cancelled response is returned as an incomplete one, or as b"" if it has neither usage
        nor output.
        Raises ResponseGone if the provider has no such response.
        """

    async def cancel(self, path: str, response_id: str) -> None:
        """Ask the provider to cancel a response; do nothing if it has ended."""

    async def delete(self, path: str, response_id: str) -> None:
        """Delete a response at the provider; do nothing if it is missing."""
