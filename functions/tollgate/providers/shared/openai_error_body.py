"""What OpenAI-like servers say of an error: an object, a text or a list, enveloped or not.

Shapes: what OpenAI and its imitators send (seen 2026-11-21). Only fields that are read are named.
"""

from typing import Annotated

import pydantic_core
from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue


def _as_text(value: object) -> object:
    """JSON in place of a text as the text that it should have been."""
    return pydantic_core.to_json(value).decode() if isinstance(value, dict | list) else value


_Text = Annotated[str, BeforeValidator(_as_text)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class ErrorDetail(_Shape):
    """The usual content of `error`; Google's layer has `details` besides."""

    message: _Text | None = None
    code: str | int | None = None
    type: str | None = None
    status: str | int | None = None
    status_code: int | None = None
    details: JsonValue = None


class FieldError(_Shape):
    """What FastAPI, and with it vLLM and Mistral, says of a field; its `input` is the prompt's."""

    loc: list[str | int] = []
    msg: str


class FieldErrors(_Shape):
    """Mistral's envelope around them."""

    detail: list[FieldError]


class ErrorBody(_Shape):
    """An error reply; some servers have no envelope, or other names for it."""

    error: ErrorDetail | str | None = None
    message: str | FieldErrors | None = None
    detail: str | list[FieldError] | None = None
    code: str | int | None = None
    type: str | None = None
