"""The client format of OpenAI's decisions API.

Nested fields of a request are sent to the provider, including unknown fields. Each answer is
returned unchanged.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.content import Image
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.work.decision import DecisionRequest
from tollgate.ingress.base import NO_HEADERS, ParsedWork, Routed
from tollgate.ingress.errors import tollgate_metadata
from tollgate.ingress.shared.accounts import write_usage
from tollgate.ingress.shared.fields import parse_preferences, printable_names, unknown_fields
from tollgate.ingress.shared.media import MediaCount, field_refusal, parse_picture
from tollgate.ingress.shared.openai_format import WholeReplyFormat, WholeReplyRenderer
from tollgate.ingress.validation import decode_object, validate_object
from tollgate.ingress.work.decisions.models import DecisionBody

_OPTIONS: Final = ("prompt_cache_key", "prompt_cache_options")


class _Pictures:
    """Collects the images of a request, in their order in the JSON."""

    def __init__(self) -> None:
        self.found: list[Image] = []
        self._count = MediaCount()

    def take_from(self, value: JsonValue, path: str) -> JsonValue:
        """Collect the images in a value; return the value with null for each image's URL.

        Raises RequestError if an image has no usable URL, or if there are too many images.
        """
        match value:
            case dict() if value.get("type") == "input_json":
                return value
            case dict() if value.get("type") == "input_image":
                self._take(value.get("image_url"), path)
                return {**value, "image_url": None}
            case dict():
                return {
                    name: self.take_from(inner, f"{path}.{name}") for name, inner in value.items()
                }
            case list():
                return [
                    self.take_from(inner, f"{path}[{index}]") for index, inner in enumerate(value)
                ]
            case _:
                return value

    def _take(self, url: JsonValue, path: str) -> None:
        place = f"{path}.image_url"
        if not isinstance(url, str):
            raise field_refusal(place, "must be an http(s) URL or a data URL")
        self._count.add(path)
        self.found.append(Image(source=parse_picture(url, place)))


class DecisionRenderer(WholeReplyRenderer):
    """Renders the answers, which are copied from the codec's output."""

    @override
    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body, with the answers in the order of the questions."""
        rest: dict[str, JsonValue] = {"usage": write_usage(record)}
        if self._call.tells_routing:
            rest["tollgate_metadata"] = tollgate_metadata(Routed.of(record))
        answers = b",".join(responses[0].output)
        model = to_json(self._served.model)
        return b'{"model":%b,"answers":[%b],%b' % (model, answers, to_json(rest)[1:])


def _objects(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            yield entry


class Decisions(WholeReplyFormat):
    """The format of POST /v1/decisions."""

    renderer_type = DecisionRenderer

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        sent = decode_object(body)
        fields = validate_object(DecisionBody, sent)
        pictures = _Pictures()
        request = DecisionRequest(
            model=fields.model,
            evidence=pictures.take_from(sent["input"], "input"),
            questions=tuple(
                {
                    name: pictures.take_from(value, f"questions[{index}].{name}")
                    for name, value in question.items()
                }
                for index, question in enumerate(_objects(sent["questions"]))
            ),
            pictures=tuple(pictures.found),
            options={name: sent[name] for name in _OPTIONS if sent.get(name) is not None},
            user=fields.user or fields.safety_identifier,
            metadata=fields.metadata or {},
            preferences=parse_preferences(fields),
        )
        return ParsedWork(request=request, ignored=printable_names(unknown_fields(fields)))
