"""Outcomes of a try to answer a background response, and the errors that its caller gets."""

from msgspec import Struct

from tollgate.core.background import RUN_MAX_S, BackgroundFailure
from tollgate.core.errors import ErrorCode, GatewayError, RequestError
from tollgate.core.records.generation import GenerationRecord
from tollgate.engine.batches.line_run import Undecided, Waits
from tollgate.ingress.responses.errors import response_error


class Answered(Struct, frozen=True):
    """A stored answer whose generation was billed."""

    generation_id: str
    content: bytes


TryOutcome = Answered | BackgroundFailure | Waits | Undecided


def failed_by(error: GatewayError) -> BackgroundFailure:
    """Return an error in the form that is stored in a failed response."""
    shown = response_error(error)
    return BackgroundFailure(
        code=str(shown["code"]),
        message=str(shown["message"]),
        tollgate_code=str(shown["tollgate_code"]),
    )


def ended_worker() -> GatewayError:
    """Return the error for a response whose workers died too often for another try."""
    message = "The worker that ran this response ended before it could finish."
    return RequestError(ErrorCode.INTERNAL_ERROR, message)


def too_large(record: GenerationRecord) -> GatewayError:
    """Return the error for an answer that is too large to be stored."""
    code = ErrorCode(record.error) if record.error else ErrorCode.INTERNAL_ERROR
    return RequestError(code, "The answer is too large to be stored.")


def too_long() -> GatewayError:
    """Return the error for an answer that a worker could not complete in time."""
    message = (
        f"The answer was not complete within {RUN_MAX_S / 60:.0f} minutes, the longest that a "
        "background response may run. Limit max_output_tokens or the reasoning effort."
    )
    return RequestError(ErrorCode.PROVIDER_TIMEOUT, message)
