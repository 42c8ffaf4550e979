"""Renders vectors in OpenAI's list, as its schema has it and no more."""

from collections.abc import Iterator, Sequence

from pydantic_core import to_json

from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.ingress.base import ParsedWork, Routed, ServedBy
from tollgate.ingress.errors import tollgate_metadata
from tollgate.ingress.shared.whole_replies import WholeReplyRenderer


class EmbeddingsRenderer(WholeReplyRenderer):
    """Renders one reply; vectors are copied as they come."""

    def __init__(self, call: ParsedWork, served: ServedBy) -> None:
        self._call = call
        self._served = served

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body, with the tokens of all inputs."""
        return b"".join(self._pieces(responses[0].output, record))

    def _pieces(self, vectors: Sequence[bytes], record: GenerationRecord) -> Iterator[bytes]:
        yield b'{"object":"list","data":['
        for index, vector in enumerate(vectors):
            yield b'%b{"object":"embedding","index":%d,"embedding":' % (b"," * (index > 0), index)
            yield vector
            yield b"}"
        tokens = record.usage.input_tokens
        yield b'],"model":%b,"usage":{"prompt_tokens":%d,"total_tokens":%d}' % (
            to_json(self._served.model),
            tokens,
            tokens,
        )
        if self._call.tells_routing:
            yield b',"tollgate_metadata":' + to_json(tollgate_metadata(Routed.of(record)))
        yield b"}"
