"""Models of the fields with which a chat completion request switches on the gateway's tools.

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
    """A tool that the gateway runs, with its options."""

    id: Name = Field(
        description="web_search, web_fetch, datetime, image or pdf; `web` means search and fetch."
    )
    enabled: bool | None = Field(default=None, description="False switches the plugin off.")
    events: bool | None = Field(
        default=None, description="True adds frames of the tool's progress to a stream."
    )
    max_results: ResultsMax | None = Field(default=None, description="Results of one search.")
    max_uses: UsesMax | None = None
    allowed_domains: Domains | None = None
    include_domains: Domains | None = Field(default=None, description="Alias of `allowed_domains`.")
    blocked_domains: Domains | None = None
    exclude_domains: Domains | None = Field(default=None, description="Alias of `blocked_domains`.")
    user_location: ApproximateLocation | None = None
    engine: Name | None = Field(
        default=None,
        description="For `pdf`: text, images, ocr, or native, which leaves files to models that "
        "can read them.",
    )
    pages_max: PagesMax | None = Field(default=None, description="For `pdf`: pages a document.")


class SearchLocation(Wire):
    """The location of the user."""

    type: Literal["approximate"]
    approximate: ApproximateLocation


class WebSearchOptions(Wire):
    """The options of a web search, in the form of OpenAI's search models."""

    search_context_size: SearchContextSize | None = None
    user_location: SearchLocation | None = None


class PluginFields(Wire):
    """The fields of a request that switch tools on."""

    plugins: Annotated[list[Plugin], Field(max_length=PLUGINS_MAX)] | None = Field(
        default=None, description="Tools that the gateway runs, if routing.yaml configures them."
    )
    web_search_options: WebSearchOptions | None = Field(
        default=None, description="OpenAI's way to switch `web_search` on."
    )


class ChatRequest(PluginFields, ChatFields):
    """The body of POST /v1/chat/completions. Null means the same as leaving a field out."""
