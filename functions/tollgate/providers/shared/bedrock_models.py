"""Names of Bedrock's models."""

from typing import Final

# Bedrock user guide, "Supported Regions and models for inference profiles" (2026-11-21): the id of
# an inference profile is one of these prefixes, a dot, and the model's id.
GEOGRAPHIES: Final = frozenset({"apac", "au", "ca", "eu", "global", "jp", "us", "us-gov"})


def base_model(upstream: str) -> str | None:
    """Return a model's id without the geography prefix of an inference profile; None for an ARN.

    Bedrock counts tokens by model id and refuses the id of a profile.
    """
    if upstream.startswith("arn:"):
        return None
    geography, _, model = upstream.partition(".")
    return model if geography in GEOGRAPHIES else upstream
