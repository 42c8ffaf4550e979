"""The closed set of differences that a row of an OpenAI-like provider may state.

A difference that needs code does not belong here: it is a codec's.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Dialect(BaseModel):
    """How an OpenAI-like server departs from OpenAI; the defaults are the conservative choice."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    developer_role: bool = False
    stream_usage: bool = True
