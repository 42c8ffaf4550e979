"""The results of lines, and their form in the output and error files."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Raw, Struct, json

from tollgate.core.batches import Tally

# The reason why a line did not run.
NotRun = Literal["batch_expired", "batch_cancelled"]
_REASONS: Final[dict[NotRun, str]] = {
    "batch_expired": "This request could not be executed before the completion window expired.",
    "batch_cancelled": "This request was not executed because the batch was cancelled.",
}


class LineAnswer(Struct, frozen=True, kw_only=True):
    """The HTTP reply that a line's request got."""

    status: int
    body: Raw


class LineResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one line."""

    custom_id: str
    request_id: str
    answer: LineAnswer | None = None
    """None for a line that did not run."""
    not_run: NotRun | None = None
    tally: Tally = Tally()

    @property
    def is_ok(self) -> bool:
        """True if the result belongs in the output file."""
        return self.answer is not None and self.answer.status < 400


class LineReply(Struct, kw_only=True):
    """A line's reply, as written to a file."""

    status_code: int
    request_id: str
    body: Raw


class LineError(Struct, kw_only=True):
    """The reason why a line did not run, as written to a file."""

    code: str
    message: str


class FileResult(Struct, kw_only=True):
    """A line of an output or error file, as OpenAI writes it.

    https://platform.openai.com/docs/api-reference/batch/request-output (2026-11-27)
    """

    id: str
    custom_id: str
    response: LineReply | None
    error: LineError | None


class MessageResult(Struct, kw_only=True, omit_defaults=True):
    """The result of a request in Anthropic's results."""

    type: Literal["succeeded", "errored", "canceled", "expired"]
    message: Raw = Raw()
    error: Raw = Raw()


class MessageLine(Struct, kw_only=True):
    """A line of the results, as Anthropic writes it.

    https://docs.anthropic.com/en/api/retrieving-message-batch-results (2026-11-27)
    """

    custom_id: str
    result: MessageResult


_RESULTS: Final = json.Decoder(tuple[LineResult, ...])


def encode_results(results: Sequence[LineResult]) -> bytes:
    """Return the stored form of the results of a piece."""
    return json.encode(results)


def decode_results(content: bytes) -> tuple[LineResult, ...]:
    """Decode the stored results of a piece; raise MsgspecError if they are corrupt."""
    return _RESULTS.decode(content)


def encode_message_line(result: LineResult) -> bytes:
    """Return a result as a line of Anthropic's results, with its newline."""
    answer = result.answer
    if answer is None:
        shown = MessageResult(type="canceled" if result.not_run == "batch_cancelled" else "expired")
    elif result.is_ok:
        shown = MessageResult(type="succeeded", message=answer.body)
    else:
        shown = MessageResult(type="errored", error=answer.body)
    return json.encode(MessageLine(custom_id=result.custom_id, result=shown)) + b"\n"


def encode_line(result: LineResult) -> bytes:
    """Return a result as a line of a file, with its newline."""
    answer, reason = result.answer, result.not_run
    reply = None
    if answer is not None:
        reply = LineReply(status_code=answer.status, request_id=result.request_id, body=answer.body)
    error = None if reason is None else LineError(code=reason, message=_REASONS[reason])
    written = FileResult(
        id=f"batch_req_{result.request_id}",
        custom_id=result.custom_id,
        response=reply,
        error=error,
    )
    return json.encode(written) + b"\n"
