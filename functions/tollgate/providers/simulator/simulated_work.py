"""The kinds of work other than chat that the simulator answers, by the path of a request.

Vectors depend on the words of a text, documents are ranked and questions decided by shared words,
images are stripes, speech is a tone, and transcripts depend on the recording's bytes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from tollgate.providers.ports.base import WireRequest
from tollgate.providers.simulator.simulated_decisions import answer_questions
from tollgate.providers.simulator.simulated_pictures import answer_with_pictures
from tollgate.providers.simulator.simulated_results import embed, moderate, rank_documents
from tollgate.providers.simulator.simulated_sound import speak
from tollgate.providers.simulator.simulated_transcripts import answer_with_transcript


class SimulatedWork(Struct, frozen=True, kw_only=True):
    """The simulator's answer to one kind of work."""

    models: frozenset[str]
    """The upstream models for the kind of work."""
    answer: Callable[[WireRequest, bytes], Iterator[bytes]]
    """Return the pieces of the answer to a request and its JSON body.

    Raises ValidationError for an unreadable body, and UpstreamRefused for a simulated refusal.
    """
    streams: bool = True
    """True if an answer may have several pieces, so its models may have `:drop-after-N`."""


def _in_one_piece(
    answer: Callable[[bytes], bytes],
) -> Callable[[WireRequest, bytes], Iterator[bytes]]:
    return lambda request, body: iter((answer(body),))


_TRANSCRIPTS: Final = SimulatedWork(models=frozenset({"transcribe"}), answer=answer_with_transcript)

SIMULATED_WORK: Final[Mapping[str, SimulatedWork]] = {
    "/embeddings": SimulatedWork(
        models=frozenset({"embed"}), answer=_in_one_piece(embed), streams=False
    ),
    "/rerank": SimulatedWork(
        models=frozenset({"rerank"}), answer=_in_one_piece(rank_documents), streams=False
    ),
    "/moderations": SimulatedWork(
        models=frozenset({"moderate"}), answer=_in_one_piece(moderate), streams=False
    ),
    "/decisions": SimulatedWork(
        models=frozenset({"decide"}), answer=_in_one_piece(answer_questions), streams=False
    ),
    "/images/generations": SimulatedWork(
        models=frozenset({"image", "image-tokens"}), answer=answer_with_pictures
    ),
    "/audio/speech": SimulatedWork(
        models=frozenset({"speech"}), answer=lambda request, body: speak(body)
    ),
    "/audio/transcriptions": _TRANSCRIPTS,
    "/audio/translations": _TRANSCRIPTS,
}
