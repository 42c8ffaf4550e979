"""Loaders of the codecs of moderations, for the rows of `formats.WIRE_FORMATS`."""

from typing import Any

from tollgate.providers.base import BatchCodec


def load_guardrails() -> BatchCodec[Any]:
    """Return the codec of Bedrock Guardrails."""
    from tollgate.providers.bedrock.errors import error_of_reply
    from tollgate.providers.bedrock_guardrails.codec import decode, encode, split_by_input

    return BatchCodec(split=split_by_input, encode=encode, decode=decode, error=error_of_reply)


def load_openai_moderations() -> BatchCodec[Any]:
    """Return the codec of OpenAI's moderations."""
    from tollgate.providers.openai_moderations.codec import decode, encode, split_by_form
    from tollgate.providers.shared.openai_errors import parse_openai_reply_error

    return BatchCodec(
        split=split_by_form, encode=encode, decode=decode, error=parse_openai_reply_error
    )
