"""Readers of work that a provider runs as a job: submitted once, then polled and fetched."""

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

JobStatus = Literal["running", "completed", "failed"]


class JobState(Struct, frozen=True, kw_only=True):
    """The state of a job at its provider."""

    status: JobStatus
    progress: int = 0
    """The provider's estimate, in percent."""


class JobCodec(Struct, frozen=True, kw_only=True):
    """Reads the jobs of one kind of work, whose requests and results a `BatchCodec` translates.

    The second argument of each reader is the provider's slug.
    """

    read_id: Callable[[bytes, str], str]
    """Return the id in the reply to a submission; raise UpstreamError if there is none."""
    path: Callable[[str], str]
    """Return the path of a job, relative to the provider's base URL."""
    read_state: Callable[[bytes, str], JobState]
    """Return the state in a job's reply; raise UpstreamError if the reply is malformed."""
    contents: Mapping[str, Callable[[str], str]]
    """Return the path of each part of a job's result; all but the first may be missing."""
