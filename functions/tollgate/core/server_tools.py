"""Tools that the gateway runs within one request: a caller's options of one, and a run's result.

A run is a part of the answer (`core.content.ServerToolRun`); its result is a note on that part.
"""

from typing import Final, get_args

from msgspec import Struct

from tollgate.core.content import ResultContent, ServerToolId

SERVER_TOOLS: Final[tuple[ServerToolId, ...]] = get_args(ServerToolId)
# A line of a result begins with it and has the address of a source.
URL_LINE: Final = "URL: "


class UserLocation(Struct, frozen=True, kw_only=True):
    """The approximate place of the user, for which a search engine looks."""

    city: str | None = None
    region: str | None = None
    country: str | None = None
    """The two letters of ISO 3166-1."""
    timezone: str | None = None
    """A name of the IANA database."""


class ServerTool(Struct, frozen=True, kw_only=True):
    """A tool that a caller switched on for a request; None leaves an option to routing.yaml."""

    id: ServerToolId
    uses_max: int | None = None
    results_max: int | None = None
    """The results of one search."""
    allowed_domains: tuple[str, ...] = ()
    """The only domains that are searched or fetched, their subdomains included; empty for any."""
    blocked_domains: tuple[str, ...] = ()
    location: UserLocation | None = None
    events: bool = False
    """True if the stream has frames of the tool's progress."""
    field: str = ""
    """The field of the request that switched the tool on."""
    left_out_as: str | None = None
    """The name under which the caller learns that nothing runs the tool; None for a request that is
    refused then."""
    by_provider: bool = False
    """True if the provider may run it by itself, which routing.yaml decides."""


class Source(Struct, frozen=True, kw_only=True):
    """A page that a run found or read, which the answer may cite."""

    url: str
    title: str = ""
    text: str = ""
    """The excerpt that the model was given."""
    published: str | None = None
    """The day or time of its publication, as the engine states it."""


class RunResult(Struct, frozen=True, kw_only=True, tag="run_result"):
    """The end of a run: what the model was given, and the sources behind it."""

    content: tuple[ResultContent, ...] = ()
    sources: tuple[Source, ...] = ()
    error: str | None = None
    """The code of the failure, which the model is given too; None for a run that succeeded."""
