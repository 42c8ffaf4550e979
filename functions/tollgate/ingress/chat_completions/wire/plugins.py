"""Models for the fields with which a chat completion request enables server tools.

`plugins` is OpenRouter's field (https://openrouter.ai/docs/features/web-search, 2026-11-22),
`web_search_options` is OpenAI's (https://platform.openai.com/docs/guides/tools-web-search,
2026-11-22).
"""

from typing import Annotated, Literal

from pydantic import Field

from tollgate.ingress.chat_completions.wire.request import PLUGINS_MAX, ChatFields
from tollgate.ingress.shared.wire.request_model import Name, Wire
from tollgate.ingress.shared.wire.server_tool_fields import (
    ApproximateLocation,
    Domains,
    PagesMax,
    ResultsMax,
    SearchContextSize,
    UsesMax,
)


class Plugin(Wire):
    """A server tool and its options."""

    id: Name = Field(
        description="web_search, web_fetch, datetime, image or pdf; `web` means search and fetch."
    )
    enabled: bool | None = Field(default=None, description="False disables the plugin.")
    events: bool | None = Field(
        default=None, description="True makes a stream report the tool's progress."
    )
    max_results: ResultsMax | None = Field(
        default=None, description="Maximum number of results per search."
    )
    max_uses: UsesMax | None = None
    allowed_domains: Domains | None = None
    include_domains: Domains | None = Field(default=None, description="Alias of `allowed_domains`.")
    blocked_domains: Domains | None = None
    exclude_domains: Domains | None = Field(default=None, description="Alias of `blocked_domains`.")
    user_location: ApproximateLocation | None = None
    engine: Name | None = Field(
        default=None,
        description="For `pdf`: text, images, ocr, or native, which passes files to models that "
        "accept them.",
    )
    pages_max: PagesMax | None = Field(
        default=None, description="For `pdf`: maximum number of pages per document."
    )


class SearchLocation(Wire):
    """The user's location."""

    type: Literal["approximate"]
    approximate: ApproximateLocation


class WebSearchOptions(Wire):
    """The web search options of OpenAI's search models."""

    search_context_size: SearchContextSize | None = None
    user_location: SearchLocation | None = None


class PluginFields(Wire):
    """The request fields that enable server tools."""

    plugins: Annotated[list[Plugin], Field(max_length=PLUGINS_MAX)] | None = Field(
        default=None, description="Server tools, which routing.yaml must configure."
    )
    web_search_options: WebSearchOptions | None = Field(
        default=None, description="OpenAI's field to enable `web_search`."
    )


class ChatRequest(PluginFields, ChatFields):
    """The body of POST /v1/chat/completions; null means the same as omitting a field."""
