"""A generation with the fields that OpenRouter's SDKs require.

https://openrouter.ai/docs/api/api-reference/generations/get-generation (SDKs 1.3.84 for Python and
1.3.19 for TypeScript, 2026-11-27)
"""

from typing import Literal

from pydantic import BaseModel, Field

from tollgate.core.money.amounts import usd
from tollgate.core.records.generation import GenerationRecord
from tollgate.web.records.generation_parts import ShadowedByObject
from tollgate.web.records.generation_shapes import GenerationObject
from tollgate.web.shapes import Usd


class OpenRouterGeneration(GenerationObject):
    """The record of a generation, with OpenRouter's fields.

    Fields for concepts that Tollgate does not have, such as apps and presets, are constant.
    """

    workspace_id: str
    refunded: Usd = Field(description="what was refunded of `total_cost`; 0 without a refund")
    notes: list[str] | None = Field(description="sentences about the bill, if requested")
    shadowed_by: ShadowedByObject | None = Field(
        description="the shadow's generation, for a day; null without one, and while it runs"
    )
    api_type: None = None
    app_id: None = None
    cache_discount: None = None
    data_region: Literal["global"] = "global"
    http_referer: None = None
    is_byok: Literal[False] = False
    moderation_latency: None = None
    native_tokens_completion_images: int | None
    num_fetches: None = None
    num_input_audio_prompt: None = None
    num_media_completion: None = None
    num_media_prompt: None = None
    num_search_results: None = None
    origin: Literal[""] = ""
    preset_id: None = None
    router: None = None
    upstream_inference_cost: None = None
    user_agent: None = None
    web_search_engine: None = None

    @classmethod
    def show(
        cls,
        record: GenerationRecord,
        refunded_nano_usd: int,
        notes: list[str] | None,
        shadowed_by: ShadowedByObject | None,
    ) -> "OpenRouterGeneration":
        """Build the object from a stored record, its refund, notes on its bill and its shadow."""
        return cls(
            **dict(GenerationObject.of(record)),
            workspace_id=record.workspace_id,
            refunded=usd(refunded_nano_usd),
            notes=notes,
            shadowed_by=shadowed_by,
            native_tokens_completion_images=record.usage.image_output_tokens,
        )


class GenerationReply(BaseModel):
    """One generation."""

    data: OpenRouterGeneration
