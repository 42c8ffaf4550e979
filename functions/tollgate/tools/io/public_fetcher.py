"""Fetches media and pages by URL from public addresses, with errors for callers and models."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from tollgate.core.buffer_budget import Buffered
from tollgate.core.errors import BufferFull, ErrorCode, RequestError
from tollgate.http1.egress import Egress, Fetched, FetchLimits
from tollgate.http1.errors import ForbiddenUrl, HttpError, TimedOut, UnusableReply
from tollgate.providers.ports.base import FetchedMedia

if TYPE_CHECKING:
    # Every process creates a fetcher at its start, but few processes need this module.
    from tollgate.tools.ports.base import PageLimits


class PublicFetcher:
    """Implements `providers.ports.base.MediaFetcher` and `tools.ports.base.PageFetcher`.

    Errors never describe a reply, so that callers cannot probe internal addresses.
    """

    def __init__(self, egress: Egress, limits: FetchLimits | None = None) -> None:
        self._egress = egress
        self._limits = limits or FetchLimits()

    async def fetch(
        self,
        url: str,
        *,
        field: str = "messages",
        bytes_max: int | None = None,
        buffered: Buffered | None = None,
    ) -> FetchedMedia:
        """Return the media at a URL; raise RequestError if it must not or cannot be fetched."""
        limits = replace(
            self._limits,
            body_bytes_max=bytes_max or self._limits.body_bytes_max,
            take=(buffered or Buffered()).take,
        )
        try:
            found = await self._egress.fetch(url, limits)
        except (ForbiddenUrl, UnusableReply, TimedOut) as refused:
            raise _refusal(str(refused), field) from refused
        except HttpError as failure:
            raise _refusal("could not be fetched", field) from failure
        return FetchedMedia(content=found.content, claimed_type=found.claimed_type)

    async def fetch_page(self, url: str, limits: "PageLimits") -> Fetched:
        """Return the page at a URL; raise RunFailure if the URL must not or cannot be fetched."""
        # Imported with the first page, because most processes fetch no page.
        from tollgate.tools.ports.base import RunFailure

        buffered = Buffered()
        fetch_limits = replace(
            self._limits,
            body_bytes_max=limits.bytes_max,
            total_s=limits.timeout_s,
            take=buffered.take,
        )
        try:
            return await self._egress.fetch(url, fetch_limits, limits.domains)
        except ForbiddenUrl as forbidden:
            raise RunFailure("url_not_allowed", f"the address {forbidden}") from forbidden
        except UnusableReply as unusable:
            raise RunFailure("url_not_accessible", f"the address {unusable}") from unusable
        except BufferFull as full:
            buffered.release()
            raise RunFailure("unavailable", "the page does not fit into memory") from full
        except TimedOut as late:
            raise RunFailure("url_not_accessible", "the page did not arrive in time") from late
        except HttpError as failure:
            raise RunFailure("url_not_accessible", "the page could not be fetched") from failure


def _refusal(problem: str, field: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"A URL in {field} {problem}.", param=field)
