"""Ids of models and inference profiles of Bedrock."""

from typing import Final

# The prefixes of inference profile ids, each before a dot and a model id: Bedrock user guide,
# "Supported Regions and models for inference profiles" (2026-11-21).
GEOGRAPHIES: Final = frozenset({"apac", "au", "ca", "eu", "global", "jp", "us", "us-gov"})


def base_model(upstream: str) -> str | None:
    """Return a model id without an inference profile's geography prefix; None for an ARN.

    Bedrock counts tokens by model id only, and refuses the id of a profile.
    """
    if upstream.startswith("arn:"):
        return None
    geography, _, model = upstream.partition(".")
    return model if geography in GEOGRAPHIES else upstream
