"""Parameters of LiteLLM's deployments, with notes on those that are not converted."""

from collections.abc import Iterator
from typing import Final

from tollgate.cli.catalog.litellm_config import Deployment, ImportNote
from tollgate.cli.catalog.price_map import CAPABILITIES, MODALITIES

# Parameters without a note, because the import reads them or the provider's section states them.
_READ: Final = frozenset(
    {
        "api_base",
        "api_key",
        "aws_region_name",
        "base_url",
        "custom_llm_provider",
        "input_cost_per_token",
        "max_input_tokens",
        "max_output_tokens",
        "mode",
        "model",
        "order",
        "output_cost_per_token",
        "rpm",
        "tpm",
        "weight",
        *CAPABILITIES,
        *MODALITIES,
    }
)
# Parameters that affect neither the answer nor where a model runs.
_HARMLESS: Final = frozenset(
    {"api_version", "max_parallel_requests", "max_retries", "stream_timeout", "timeout"}
)
# Parameters with a counterpart in the provider's section, whose values are not compared.
_IN_PROVIDER: Final = {
    "vertex_credentials": "key",
    "vertex_location": "location",
    "vertex_project": "project",
}


def list_unread(deployment: Deployment) -> Iterator[ImportNote]:
    """Yield a note for each parameter without a counterpart."""
    for key in deployment.params:
        if key not in _READ:
            setting = _IN_PROVIDER.get(key)
            says = f"is `{setting}` of the provider here" if setting else "has no counterpart"
            yield deployment.note(f"its {key} {says}", is_loss=key not in _HARMLESS)
