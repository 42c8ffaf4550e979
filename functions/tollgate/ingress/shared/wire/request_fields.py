"""Models for fields that requests in OpenAI's formats share, and for the gateway's own fields.

https://platform.openai.com/docs/api-reference/chat/create (2026-08-21), vLLM's extra parameters
(https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html, 2026-11-21).
"""

import re
from decimal import Decimal
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    PlainValidator,
    Tag,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from tollgate.core.principal import UsageOn
from tollgate.core.prompt_policy import check_region
from tollgate.core.request import ProviderSort
from tollgate.ingress.shared.wire.request_model import Json, Name, String, Wire, by_shape

STOPS_MAX: Final = 4
CHOICES_MAX: Final = 8
METADATA_PAIRS_MAX: Final = 16
# OpenAI documents 128 tools; other providers accept more.
TOOLS_MAX: Final = 512
TOKENS_MAX: Final = 2**31 - 1
_LOGIT_BIAS_MAX: Final = 1_024
_TEXT_LENGTH_MAX: Final = 65_536
_GUIDED_CHOICES_MAX: Final = 1_024
NAMES_MAX: Final = 32
VARIABLES_MAX: Final = 32
_DOLLARS_MAX: Final = 1_000_000
_DIGITS_MAX: Final = 32
_PRICE: Final = re.compile(r"[0-9]+(\.[0-9]+)?([eE]-?[0-9]{1,2})?", re.ASCII)

Names = Annotated[list[Name], Field(max_length=NAMES_MAX)]
_Nothing = Annotated[list[Any], Field(max_length=0)]
GuidedText = Annotated[str, Field(min_length=1, max_length=_TEXT_LENGTH_MAX)]
ObjectOrText = Annotated[
    Annotated[Json, Tag("<object>")] | Annotated[GuidedText, Tag("<string>")],
    by_shape("an object or a string"),
]
Stop = Annotated[
    String | Annotated[list[str], Field(max_length=STOPS_MAX), Tag("<array>")],
    by_shape("a string or an array of strings"),
]


class AnyText(Wire):
    """Unrestricted text as the input of a custom tool."""

    type: Literal["text"]


class Grammar(Wire):
    """The grammar for the input of a custom tool."""

    syntax: Literal["lark", "regex"]
    definition: GuidedText


class GuidedDecoding(Wire):
    """Fields that are passed unchanged to servers like vLLM, which alone support them."""

    chat_template: GuidedText | None = None
    chat_template_kwargs: Json | None = None
    mm_processor_kwargs: Json | None = None
    guided_json: ObjectOrText | None = None
    guided_regex: GuidedText | None = None
    guided_choice: (
        Annotated[list[Any], Field(min_length=1, max_length=_GUIDED_CHOICES_MAX)] | None
    ) = None
    guided_grammar: GuidedText | None = None
    structural_tag: ObjectOrText | None = None
    guided_decoding_backend: GuidedText | None = None
    guided_whitespace_pattern: GuidedText | None = None


class SamplingFields(Wire):
    """Sampling parameters, with the names in `core.request.Sampling`."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=TOKENS_MAX)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: Stop | None = Field(default=None, description="One string, or up to four strings.")
    logit_bias: (
        Annotated[
            dict[
                Annotated[str, Field(pattern=r"^[0-9]{1,10}$")],
                Annotated[float, Field(ge=-100, le=100)],
            ],
            Field(max_length=_LOGIT_BIAS_MAX),
        ]
        | None
    ) = None


class StreamOptions(Wire):
    """Stream options; usage is always sent, even if `include_usage` is false."""

    include_usage: bool | None = None


def _uuid7(value: str) -> str:
    try:
        version = UUID(value).version
    except ValueError:
        version = None
    if version != 7:
        raise PydanticCustomError("uuid7", "must be a UUID version 7")
    return value


def _exact(value: object) -> object:
    """Convert a price in a string or a number to the exact decimal that the caller wrote."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        text = str(value)
        if len(text) <= _DIGITS_MAX and _PRICE.fullmatch(text):
            return Decimal(text)
    raise PydanticCustomError("price", "must be an amount in dollars, as a number or a string")


Dollars = Annotated[
    Decimal,
    Field(le=_DOLLARS_MAX),
    BeforeValidator(_exact),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}),
]


class PriceCeiling(Wire):
    """The highest acceptable prices, in dollars per million tokens and per request."""

    prompt: Dollars | None = None
    completion: Dollars | None = None
    request: Dollars | None = None


def _known_region(region: str) -> str:
    try:
        return check_region(region)
    except ValueError as unknown:
        raise PydanticCustomError("region", "must be eu or the code of a country") from unknown


_Region = Annotated[str, Field(max_length=32), AfterValidator(_known_region)]


class ProviderPreferences(Wire):
    """Preferences for the providers of a request and for the order in which they are tried.

    The fields are OpenRouter's: https://openrouter.ai/docs/features/provider-routing (2026-11-21).
    `regions` is Tollgate's own. A preference that the gateway cannot guarantee (such as which
    weights are served) is refused, not ignored.
    """

    order: Names | None = None
    only: Names | None = None
    ignore: Names | None = None
    allow_fallbacks: bool | None = None
    require_parameters: bool | None = None
    sort: ProviderSort | None = Field(
        default=None,
        description="`throughput` and `latency` use the gateway's own measurements; endpoints "
        "that were not measured come last.",
    )
    max_price: PriceCeiling | None = None
    data_collection: Literal["allow", "deny"] | None = Field(
        default=None, description="`deny` leaves out endpoints that may train on the prompt."
    )
    zdr: bool | None = Field(
        default=None, description="`true` leaves out endpoints that may store the prompt."
    )
    regions: Annotated[list[_Region], Field(max_length=64)] | None = Field(
        default=None,
        description="`eu`, and ISO 3166 codes of countries, in which endpoints may run.",
    )
    quantizations: _Nothing | None = None


class RoutingFields(Wire):
    """The requested model, and preferences for models and providers."""

    model: Name
    models: Names | None = Field(
        default=None, description="Models to try in this order if `model` fails."
    )
    provider: ProviderPreferences | None = None
    session_id: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="Requests of one session go to the same endpoint."
    )


def _text_or_integer(value: object) -> object:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    raise PydanticCustomError("variable", "must be a string or a whole number")


_VariableValue = Annotated[
    str | int,
    PlainValidator(_text_or_integer),
    WithJsonSchema({"type": ["string", "integer"]}),
]


class PresetFields(RoutingFields):
    """The requested model, and the preset that completes the request."""

    preset: Name | None = Field(
        default=None,
        description="The slug of a preset. `model` can name it, too: `preset/SLUG`, or "
        "`MODEL@preset/SLUG`.",
    )
    preset_variables: (
        Annotated[
            dict[Annotated[str, Field(max_length=64)], _VariableValue],
            Field(max_length=VARIABLES_MAX),
        ]
        | None
    ) = None


class EndUser(Wire):
    """The id of the caller's end user, and labels."""

    user: Annotated[str, Field(max_length=512)] | None = None
    metadata: (
        Annotated[
            dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
            Field(max_length=METADATA_PAIRS_MAX),
        ]
        | None
    ) = None


class ReplyFields(EndUser):
    """The number of answers, and how the reply is sent."""

    n: Annotated[int, Field(ge=1, le=CHOICES_MAX)] | None = Field(
        default=None, description="The number of answers; each is billed."
    )
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    usage_on: UsageOn | None = Field(
        default=None,
        description="`finish` sends usage in the finish frame, for clients that cannot read a "
        "frame with empty `choices`; `frame` sends it afterwards. Unset, the setting of the key "
        "or its workspace applies.",
    )
    episode_id: (
        Annotated[str, AfterValidator(_uuid7), Field(json_schema_extra={"format": "uuid"})] | None
    ) = Field(
        default=None,
        validation_alias=AliasChoices("episode_id", "tensorzero::episode_id"),
        description="A UUID version 7, echoed in the answer.",
    )
