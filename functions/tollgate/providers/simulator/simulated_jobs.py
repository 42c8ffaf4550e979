"""The simulator's videos: jobs that are complete at their first poll.

The id of a job has the seconds of its video, so that nothing is stored. A job whose prompt has the
word `harm` fails. The content is the beginning of an MP4 file without frames.
"""

from collections.abc import Mapping
from typing import Final

from pydantic_core import to_json

from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import JobCalls, ProviderRow, WireRequest
from tollgate.providers.simulator.faults import simulated_refusal
from tollgate.providers.transports.authorization import ProviderServices

_MODEL: Final = "video"
_FAILS: Final = "x"
_CONTENT: Final = b"\0\0\0\x14ftypisom\0\0\0\0isom" + b"\0\0\0\x08mdat"
_FILTERED: Final[Mapping[str, JsonValue]] = {
    "code": "moderation_blocked",
    "message": "The simulated filter refuses the prompt.",
}


class SimulatedJobs:
    """Implements `JobCalls` without a network."""

    async def submit(self, request: WireRequest) -> bytes:
        fields = {part.name: part.content.decode(errors="replace") for part in request.form}
        if fields.get("model") != _MODEL:
            raise simulated_refusal(404, "not_found_error")
        fails = _FAILS if "harm" in fields["prompt"].lower().split() else ""
        return to_json({"id": f"sim{fails}-{fields['seconds']}", "status": "queued"})

    async def get(self, path: str, *, bytes_max: int) -> bytes:
        _, _, job_id, *parts = path.split("/")
        kind, _, seconds = job_id.partition("-")
        if parts == ["content"]:
            return _CONTENT
        if parts:
            raise simulated_refusal(404, "not_found_error")
        if kind.endswith(_FAILS):
            return to_json({"id": job_id, "status": "failed", "error": _FILTERED})
        return to_json({"id": job_id, "status": "completed", "progress": 100, "seconds": seconds})


def make_simulated_jobs(row: ProviderRow, services: ProviderServices) -> JobCalls:
    """Return the simulator's jobs."""
    return SimulatedJobs()
