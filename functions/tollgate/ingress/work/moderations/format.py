"""The client format of OpenAI's moderations API."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.content import Image, Text
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.work.moderation import ModerationRequest, Subject
from tollgate.ingress.base import NO_HEADERS, ParsedWork, Routed
from tollgate.ingress.errors import tollgate_metadata
from tollgate.ingress.shared.fields import (
    extra_fields,
    parse_preferences,
    printable_names,
    unknown_fields,
)
from tollgate.ingress.shared.media import field_refusal, parse_picture
from tollgate.ingress.shared.openai_format import WholeReplyFormat, WholeReplyRenderer
from tollgate.ingress.validation import validate_body
from tollgate.ingress.work.moderations.models import ModerationBody, PicturePart, TextPart

PICTURES_MAX: Final = 16


def _subjects(entries: list[str | TextPart | PicturePart]) -> tuple[Subject, ...]:
    """Return one subject for each text, or one subject with all parts."""
    texts = [entry for entry in entries if isinstance(entry, str)]
    if not texts:
        parts = [entry for entry in entries if not isinstance(entry, str)]
        return (tuple(_part(entry, f"input[{index}]") for index, entry in enumerate(parts)),)
    for index, entry in enumerate(entries):
        if isinstance(entry, str) != isinstance(entries[0], str):
            raise field_refusal(
                f"input[{index}]",
                "must have the same form as the entries before it: a string or a part",
            )
    return tuple((Text(text=text),) for text in texts)


def _part(part: TextPart | PicturePart, path: str) -> Text | Image:
    match part:
        case TextPart():
            return Text(text=part.text)
        case PicturePart():
            return Image(source=parse_picture(part.image_url.url, f"{path}.image_url.url"))


def _unknown(fields: ModerationBody) -> Iterator[str]:
    yield from unknown_fields(fields)
    for index, entry in enumerate(() if isinstance(fields.input, str) else fields.input):
        if isinstance(entry, str):
            continue
        yield from extra_fields(entry, f"input[{index}].")
        if isinstance(entry, PicturePart):
            yield from extra_fields(entry.image_url, f"input[{index}].image_url.")


class ModerationRenderer(WholeReplyRenderer):
    """Renders judgements; each is copied from the codec's output."""

    @override
    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body, with the judgements in the order of the inputs."""
        head = {"id": f"modr-{self._served.generation_id}", "model": self._served.model}
        metadata = b""
        if self._call.tells_routing:
            metadata = b',"tollgate_metadata":' + to_json(tollgate_metadata(Routed.of(record)))
        results = b",".join(responses[0].output)
        return b'%b,"results":[%b]%b}' % (to_json(head)[:-1], results, metadata)


class Moderations(WholeReplyFormat):
    """The format of POST /v1/moderations."""

    renderer_type = ModerationRenderer

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        fields = validate_body(ModerationBody, body)
        request = ModerationRequest(
            model=fields.model,
            subjects=_subjects([fields.input] if isinstance(fields.input, str) else fields.input),
            user=fields.user,
            metadata=fields.metadata or {},
            preferences=parse_preferences(fields),
        )
        if len(request.pictures) > PICTURES_MAX:
            raise field_refusal("input", f"must have at most {PICTURES_MAX} pictures")
        return ParsedWork(request=request, ignored=printable_names(_unknown(fields)))
