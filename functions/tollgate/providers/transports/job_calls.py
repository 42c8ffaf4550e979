"""Calls over HTTP for work that a provider runs as a job."""

from pydantic_core import to_json

from tollgate.providers.ports.base import JobCalls, ProviderRow, WireRequest
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.batches.calls import ProviderCalls, make_calls


class HttpJobCalls:
    """Implements `JobCalls` below the address of one row, to which alone its key is sent."""

    def __init__(self, calls: ProviderCalls) -> None:
        self._calls = calls

    async def submit(self, request: WireRequest) -> bytes:
        body = b"" if request.form else to_json(request.body)
        return await self._calls.read(
            "POST", request.path, body=body, form=request.form, headers=request.headers
        )

    async def get(self, path: str, *, bytes_max: int) -> bytes:
        return await self._calls.read("GET", path, bytes_max=bytes_max)


def make_job_calls(row: ProviderRow, services: ProviderServices) -> JobCalls:
    """Return the calls of a row, with the row's key."""
    return HttpJobCalls(make_calls(row, services))
