"""The reply with judgements.

https://platform.openai.com/docs/api-reference/moderations/object (2026-08-21)
"""

from pydantic import BaseModel, ConfigDict

from tollgate.ingress.shared.wire.reply_models import Answer, TollgateMetadata


class Judgement(BaseModel):
    """The judgement of one text; its categories are those of the model."""

    model_config = ConfigDict(extra="allow")

    flagged: bool
    categories: dict[str, bool]
    category_scores: dict[str, float]


class ModerationReply(Answer):
    """The judgements, in the order of the texts."""

    id: str
    model: str
    results: list[Judgement]
    tollgate_metadata: TollgateMetadata | None = None
