"""Limits and capabilities of imported models that the base file does not state.

LiteLLM sends every request to the provider, whatever its map of models says. A limit that no source
states is therefore not applied here, so an imported model serves the same requests as before.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tollgate.cli.catalog.litellm_config import Deployment, ImportNote
from tollgate.cli.catalog.price_map import CAPABILITIES, MODALITIES

# More than the context of any model in the catalog.
_CONTEXT_UNKNOWN: Final = 2_000_000
# Anthropic's API requires a limit and refuses one that is too large. Models that are still served
# write at least this much: platform.claude.com, "Models overview" (2026-11-27).
_OUTPUT_OF_CLAUDE: Final = 32_000
# If a model lacks one of these capabilities, requests that need it go to another model. If it lacks
# any other capability, requests are adapted.
_DECISIVE: Final = frozenset({"tools", "structured_output"})
# The codec of Responses asks each model that supports reasoning for encrypted reasoning, which
# other models refuse.
_ASKS_FOR_REASONING: Final = "openai_responses"


class DeploymentFacts:
    """Facts about a deployment from its config and the price map; the config takes precedence."""

    def __init__(self, deployment: Deployment, entry: Mapping[str, Any]) -> None:
        self._deployment = deployment
        self._entry = entry

    def get(self, key: str) -> Any:
        """Return a fact, or None if neither source states it."""
        found = self._deployment.fact(key)
        return self._entry.get(key) if found is None else found

    def tokens(self, key: str) -> int | None:
        """Return a number of tokens, or None if neither source states one."""
        found = self.get(key)
        return found if isinstance(found, int) and found > 0 else None

    @property
    def input(self) -> list[str]:
        """The modalities that neither source denies."""
        return ["text", *(name for key, name in MODALITIES.items() if self.get(key) is not False)]

    def supports(self, *, known: bool, codec: str) -> list[str]:
        """Return the capabilities that neither source denies; for a known model, only those that
        decide which model serves, because the base file states the others.
        """
        return [
            name
            for key, name in CAPABILITIES.items()
            if self.get(key)
            or (
                self.get(key) is None
                and (name in _DECISIVE or not known)
                and (name != "reasoning" or codec != _ASKS_FOR_REASONING)
            )
        ]


def limit_unknown(
    deployment: Deployment,
    facts: DeploymentFacts,
    *,
    context: int | None,
    codec: str,
    notes: list[ImportNote],
) -> Iterator[tuple[str, Any]]:
    """Yield the settings of a model that the base file lacks.

    `context` is the context size in genai-prices.
    """
    prompt = facts.tokens("max_input_tokens")
    if prompt is None and context is not None:
        prompt = context
        note = f"its context is that of genai-prices: {context:,} tokens"
        notes.append(deployment.note(note, is_loss=True))
    output = facts.tokens("max_output_tokens")
    if prompt is None:
        notes.append(deployment.note("its context is unknown: prompts are not limited"))
    if output is None and codec == "anthropic":
        output = _OUTPUT_OF_CLAUDE
        note = f"its max_output is unknown: answers have at most {output:,} tokens"
        notes.append(deployment.note(note, is_loss=True))
    elif output is None:
        notes.append(deployment.note("its max_output is unknown: answers are not limited"))
    prompt = prompt or max(_CONTEXT_UNKNOWN, output or 0)
    output = output or prompt
    yield "context", max(prompt, output)
    yield "max_output", output
    yield "input", facts.input
    yield "supports", facts.supports(known=False, codec=codec)


def widen_known(model: Mapping[str, Any], facts: DeploymentFacts, codec: str) -> dict[str, Any]:
    """Return a known model's inputs and capabilities at a provider that its base file entry lacks.

    The base file states only the capabilities at its own endpoints.
    """
    takes = [*model.get("input", ("text",)), *facts.input]
    can = [*model.get("supports", ()), *facts.supports(known=True, codec=codec)]
    return {"input": list(dict.fromkeys(takes)), "supports": list(dict.fromkeys(can))}
