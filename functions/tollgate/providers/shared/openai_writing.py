"""Request fields that several of OpenAI's formats share."""

from collections.abc import Mapping
from typing import Final, assert_never
from urllib.parse import quote

from tollgate.core.content import InlineMedia, MediaSource, MediaUrl, sent_media
from tollgate.core.json_value import JsonValue
from tollgate.core.request import GenerationRequest
from tollgate.providers.ports.base import Target

# The parameter schema for a tool without parameters.
ANY_OBJECT: Final[Mapping[str, JsonValue]] = {"type": "object", "properties": {}}
# OpenAI requires a name for inline files.
FILENAME: Final = "document.pdf"


def path_of(target: Target, usual: str) -> str:
    """Return the dialect's request path, or else `usual`."""
    model = quote(target.upstream_model, safe="")
    return (target.dialect.path or usual).replace("{model}", model)


def limit_fields(request: GenerationRequest, target: Target) -> dict[str, JsonValue]:
    """Return the fields for the usage, the output limit and the number of choices."""
    dialect = target.dialect
    fields: dict[str, JsonValue] = {}
    if dialect.stream_usage:
        fields["stream_options"] = {"include_usage": True}
    limit = target.limited(request.output_tokens_max)
    if limit is not None:
        fields[dialect.output_limit_field] = limit
    if request.choices > 1 and dialect.native_choices:
        fields["n"] = request.choices
    return fields


def url_of(source: MediaSource) -> str:
    """Return the URL of media, which is a data URL for inline media."""
    match sent_media(source):
        case InlineMedia(media_type=media_type, base64=text):
            return f"data:{media_type};base64,{text}"
        case MediaUrl(url=url):
            return url
        case never:
            assert_never(never)
