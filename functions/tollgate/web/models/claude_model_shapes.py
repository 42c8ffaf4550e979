"""Models in Anthropic's format's list, for clients that send `anthropic-version`.

https://platform.claude.com/docs/en/api/models/list (2026-11-22)
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel

from tollgate.core.errors import invalid_request
from tollgate.web.models.model_shapes import ModelObject


class ClaudeModelObject(BaseModel):
    """A model, route or alias."""

    type: Literal["model"] = "model"
    id: str
    display_name: str
    created_at: datetime
    max_input_tokens: int
    max_tokens: int


class ClaudeModelsReply(BaseModel):
    """A page of models."""

    data: list[ClaudeModelObject]
    has_more: bool
    first_id: str | None
    last_id: str | None


def claude_model(shown: ModelObject) -> ClaudeModelObject:
    """Return a model in Anthropic's format, with the limits of a single answer."""
    return ClaudeModelObject(
        id=shown.id,
        display_name=shown.name,
        created_at=datetime.fromtimestamp(shown.created, UTC),
        max_input_tokens=shown.context_length,
        max_tokens=shown.max_completion_tokens or 0,
    )


def claude_models(
    shown: Sequence[ModelObject], *, limit: int, after_id: str | None, before_id: str | None
) -> ClaudeModelsReply:
    """Return the page after `after_id`, or the page that ends before `before_id`.

    Raises RequestError if no model has that id.
    """
    ids = [model.id for model in shown]
    first, end = 0, len(ids)
    if after_id is not None:
        first = _place(ids, after_id, "after_id") + 1
        end = min(end, first + limit)
    elif before_id is not None:
        end = _place(ids, before_id, "before_id")
        first = max(0, end - limit)
    else:
        end = min(end, limit)
    page = [claude_model(model) for model in shown[first:end]]
    return ClaudeModelsReply(
        data=page,
        has_more=first > 0 if before_id is not None and after_id is None else end < len(ids),
        first_id=page[0].id if page else None,
        last_id=page[-1].id if page else None,
    )


def _place(ids: Sequence[str], id_: str, field: str) -> int:
    if id_ not in ids:
        raise invalid_request(f"{field} must be the id of a model.", field)
    return ids.index(id_)
