"""Names of Bedrock's models."""

from typing import Final

# Bedrock user guide, "Supported Regions and models for inference profiles" (2026-11-21): the id of
# a profile is the model's id behind one of these prefixes.
GEOGRAPHIES: Final = frozenset({"apac", "au", "ca", "eu", "global", "jp", "us", "us-gov"})


def base_model(upstream: str) -> str | None:
    """Return the id of a model without the geography of a profile; None for an ARN.

    Tokens are counted by a model, never by a profile.
    """
    if upstream.startswith("arn:"):
        return None
    geography, _, model = upstream.partition(".")
    return model if geography in GEOGRAPHIES else upstream
