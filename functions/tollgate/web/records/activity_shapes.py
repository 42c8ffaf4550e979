"""Activity in the form shown by the API and the export."""

from collections.abc import Collection
from typing import Literal

from pydantic import BaseModel, Field

from tollgate.core.money.amounts import usd
from tollgate.core.records.activity import ActivityRow
from tollgate.core.records.activity_groups import GROUP_FIELDS
from tollgate.web.shapes import Usd


class ActivityObject(BaseModel):
    """Usage of one key, model and provider on one UTC day, or a sum over several such rows.

    In a sum, the fields by which it is not grouped are null.
    """

    date: str | None
    model: str | None = Field(description="null as well if no model served")
    provider_name: str | None
    key_id: str | None
    key_name: str | None
    labels: dict[str, str]
    requests: int
    failed: int
    usage: Usd
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    audio_prompt_tokens: int
    audio_completion_tokens: int
    images: int
    web_searches: int = Field(description="searches that a provider ran itself")
    search_units: int = Field(description="search units that rerankers charged for")
    image_prompt_tokens: int
    image_completion_tokens: int
    audio_seconds: int = Field(description="seconds of audio input, if billed by time")
    characters: int = Field(description="characters of spoken text, if billed by characters")
    text_units: int = Field(description="text units that guardrails read, if billed by them")
    video_seconds: int = Field(description="seconds of generated video")

    @classmethod
    def of(cls, row: ActivityRow, by: Collection[str] = GROUP_FIELDS) -> "ActivityObject":
        """Build the object from a stored row, or from a sum grouped by `by`."""
        return cls(
            date=row.day if "day" in by else None,
            model=row.model if "model" in by else None,
            provider_name=row.provider if "provider" in by else None,
            key_id=row.key_id if "key" in by else None,
            key_name=row.key_label if "key" in by else None,
            labels=dict(row.all_labels),
            requests=row.requests,
            failed=row.failed,
            usage=usd(row.cost_nano_usd),
            prompt_tokens=row.usage.input_tokens,
            completion_tokens=row.usage.output_tokens or 0,
            reasoning_tokens=row.usage.reasoning_tokens or 0,
            cached_tokens=row.usage.cache_read_input_tokens or 0,
            cache_write_tokens=row.usage.cache_write_input_tokens,
            audio_prompt_tokens=row.usage.audio_input_tokens or 0,
            audio_completion_tokens=row.usage.audio_output_tokens or 0,
            images=row.usage.images or 0,
            web_searches=row.usage.web_searches or 0,
            search_units=row.usage.search_units or 0,
            image_prompt_tokens=row.usage.image_input_tokens or 0,
            image_completion_tokens=row.usage.image_output_tokens or 0,
            audio_seconds=row.usage.audio_seconds or 0,
            characters=row.usage.characters or 0,
            text_units=row.usage.text_units or 0,
            video_seconds=row.usage.video_seconds or 0,
        )


class OpenRouterActivity(ActivityObject):
    """Activity with the additional fields that OpenRouter's SDKs require."""

    byok_usage_inference: Literal[0] = 0
    endpoint_id: Literal[""] = ""
    model_permaslug: str | None

    @classmethod
    def show(cls, row: ActivityRow, by: Collection[str]) -> "OpenRouterActivity":
        """Build the object from a stored row, or from a sum over the fields in `by`."""
        shown = ActivityObject.of(row, by or GROUP_FIELDS)
        return cls.model_construct(**dict(shown), model_permaslug=shown.model)
