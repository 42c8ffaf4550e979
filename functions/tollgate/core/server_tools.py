"""Tools that the gateway runs within a request: the callers' options, and the results of runs.

A run is a part of the answer (`core.content.ServerToolRun`), and its result is a note on that part.
"""

from typing import Final, get_args

from msgspec import Struct

from tollgate.core.content import ResultContent, ServerToolId

SERVER_TOOLS: Final[tuple[ServerToolId, ...]] = get_args(ServerToolId)
# A line of a result that begins with this prefix contains the URL of a source.
URL_LINE: Final = "URL: "


class UserLocation(Struct, frozen=True, kw_only=True):
    """The approximate location of the user, which search engines use for ranking."""

    city: str | None = None
    region: str | None = None
    country: str | None = None
    """A two-letter ISO 3166-1 country code."""
    timezone: str | None = None
    """An IANA time zone."""


class ServerTool(Struct, frozen=True, kw_only=True):
    """A tool that a caller enabled for a request. Options that are None come from routing.yaml."""

    id: ServerToolId
    uses_max: int | None = None
    results_max: int | None = None
    """The maximum number of results per search."""
    allowed_domains: tuple[str, ...] = ()
    """The domains that may be searched or fetched, including subdomains; empty allows all."""
    blocked_domains: tuple[str, ...] = ()
    location: UserLocation | None = None
    events: bool = False
    """True if the stream reports the progress of the tool."""
    field: str = ""
    """The request field that enabled the tool."""
    left_out_as: str | None = None
    """The name that is reported if nothing can run the tool; None refuses the request instead."""
    by_provider: bool = False
    """True if the provider may run the tool itself; routing.yaml decides whether it does."""


class Source(Struct, frozen=True, kw_only=True):
    """A page that a run found or read, which the answer may cite."""

    url: str
    title: str = ""
    text: str = ""
    """The excerpt that the model got."""
    published: str | None = None
    """The day or time of publication, as reported by the engine."""


class RunResult(Struct, frozen=True, kw_only=True, tag="run_result"):
    """The result of a run: the content that the model got, and its sources."""

    content: tuple[ResultContent, ...] = ()
    sources: tuple[Source, ...] = ()
    error: str | None = None
    """The error code, which the model gets too; None for a run that succeeded."""
