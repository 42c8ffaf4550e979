"""The limit that a row states for requests without one.

Keeps C12.
"""

from typing import Final, get_args

import pytest
from msgspec.structs import replace

from tests.unit.providers.request_options import PLAIN, as_one_text
from tollgate.providers.ports.base import Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import WIRE_FORMATS, FormatName, codec_of

NAMES: Final = {
    *("max_tokens", "max_completion_tokens", "max_output_tokens"),
    *("maxTokens", "maxOutputTokens"),
}
FORMATS: Final = [name for name in get_args(FormatName) if WIRE_FORMATS[name].codec is not None]


def sent(format_: FormatName, asked: int | None, default: int | None) -> object:
    """The limit in the body, which a format may keep in a section."""
    dialect = Dialect(output_limit_default=default)
    target = Target(
        provider="p", model="p/m", upstream_model="m", output_tokens_max=4096, dialect=dialect
    )
    request = as_one_text(PLAIN) if format_ == "openai_completions" else PLAIN
    body = codec_of(format_).encode(replace(request, output_tokens_max=asked), target).body
    sections = (body, body.get("inferenceConfig"), body.get("generationConfig"))
    fields = [it for section in sections if isinstance(section, dict) for it in section.items()]
    found = [value for name, value in fields if name in NAMES]
    return found[0] if found else None


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("asked", "default", "limit"), [(None, 1000, 1000), (2000, 1000, 2000), (None, 9999, 4096)]
)
def test_c12_a_request_without_a_limit_gets_that_of_the_row(
    format_: FormatName, asked: int | None, default: int, limit: int
) -> None:
    assert sent(format_, asked, default) == limit


@pytest.mark.parametrize("format_", ["bedrock", "openai_chat", "openai_responses"])
def test_c12_a_row_that_states_none_leaves_the_limit_to_the_provider(format_: FormatName) -> None:
    assert sent(format_, None, None) is None
