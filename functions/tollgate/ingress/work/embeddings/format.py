"""The client format of OpenAI's embeddings API."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.records.generation import GenerationRecord
from tollgate.core.request import InputType
from tollgate.core.response import GenerationResponse
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.ingress.base import NO_HEADERS, ParsedWork, Routed
from tollgate.ingress.errors import tollgate_metadata
from tollgate.ingress.shared.fields import parse_preferences, printable_names, unknown_fields
from tollgate.ingress.shared.openai_format import WholeReplyFormat, WholeReplyRenderer
from tollgate.ingress.validation import validate_body
from tollgate.ingress.work.embeddings.models import EmbeddingsRequest, Input, StatedInputType

# The last three names come from Cohere and NVIDIA.
_INPUT_TYPES: Final[Mapping[StatedInputType, InputType]] = {
    "query": "query",
    "document": "document",
    "classification": "classification",
    "clustering": "clustering",
    "search_query": "query",
    "search_document": "document",
    "passage": "document",
}


def _inputs(input_: Input) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Return the texts and the lists of token ids in an input; one of the two is empty."""
    if isinstance(input_, str):
        return (input_,), ()
    texts = tuple(entry for entry in input_ if isinstance(entry, str))
    lists = tuple(tuple(entry) for entry in input_ if isinstance(entry, list))
    ids = tuple(entry for entry in input_ if isinstance(entry, int))
    return texts, (ids,) if ids else lists


class EmbeddingsRenderer(WholeReplyRenderer):
    """Renders vectors in OpenAI's format; each vector is copied from the codec's output."""

    @override
    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body; its usage counts the tokens of all inputs."""
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


class Embeddings(WholeReplyFormat):
    """The format of POST /v1/embeddings."""

    renderer_type = EmbeddingsRenderer

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        fields = validate_body(EmbeddingsRequest, body)
        texts, token_lists = _inputs(fields.input)
        request = EmbeddingRequest(
            model=fields.model,
            texts=texts,
            token_lists=token_lists,
            encoding=fields.encoding_format or "float",
            dimensions=fields.dimensions,
            input_type=None if fields.input_type is None else _INPUT_TYPES[fields.input_type],
            user=fields.user,
            metadata=fields.metadata or {},
            preferences=parse_preferences(fields),
        )
        return ParsedWork(request=request, ignored=printable_names(unknown_fields(fields)))
