"""The form in which a background response is shown in each state.

https://developers.openai.com/docs/guides/background (2026-11-27)
"""

from typing import Final

from pydantic_core import from_json, to_json

from tollgate.core.background import BackgroundResponse
from tollgate.core.json_value import JsonValue
from tollgate.ingress.responses.stored import StoredResponse
from tollgate.stores.ports.batches import BackgroundParts

# The part with the response as its caller got it first.
QUEUED: Final = "queued"
_ANSWERED: Final = ("completed", "incomplete")


async def show_state(job: BackgroundResponse, parts: BackgroundParts) -> bytes | None:
    """Return a response as JSON; None if its contents were deleted or have expired.

    Raises ValueError if the contents are corrupt.
    """
    if job.status in _ANSWERED:
        stored = await parts.answer(job)
        return None if stored is None else StoredResponse.from_bytes(stored).response
    queued = await parts.get(job, QUEUED)
    if queued is None:
        return None
    state: dict[str, JsonValue] = {**from_json(queued), "status": job.status}
    if job.failure is not None:
        failure = job.failure
        state["error"] = {
            "code": failure.code,
            "message": failure.message,
            "tollgate_code": failure.tollgate_code,
        }
    return to_json(state)
