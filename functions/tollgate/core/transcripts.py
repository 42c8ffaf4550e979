"""The prompt and the answers of the current generation, if its key has them stored."""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final

from msgspec import Struct

from tollgate.core.request import GenerationRequest
from tollgate.core.response import Fold


class ChatTranscript(Struct, frozen=True, kw_only=True):
    """A request, and the answers to it so far."""

    request: GenerationRequest
    answers: Sequence[Fold]


# A task inherits the transcript from the task that creates it.
_CURRENT: Final[ContextVar[ChatTranscript | None]] = ContextVar("tollgate.transcript", default=None)


def share_transcript(transcript: ChatTranscript) -> None:
    """Set the current transcript, only for a key whose content is stored."""
    _CURRENT.set(transcript)


def withdraw_transcript() -> None:
    """Clear the current transcript."""
    _CURRENT.set(None)


def shared_transcript() -> ChatTranscript | None:
    """Return the transcript of the current generation; None if its content is not stored."""
    return _CURRENT.get()
