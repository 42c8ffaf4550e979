"""Models in the format of Codex, which discards the whole list from `GET /models` if a field is
missing.

Measured with Codex 0.169.0; without `apply_patch_tool_type`, a model gets no `apply_patch` tool.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from pydantic import BaseModel, Field

from tollgate.web.models.model_shapes import ModelObject

_OUTPUT_TOKENS_OF_A_TOOL: Final = 10_000
_EFFORTS: Final = ("low", "medium", "high")
_INSTRUCTIONS: Final = """\
You are a coding agent in the terminal of a user, in whose working folder you act through tools.
Read what is there before you change it, and follow the instructions of files such as AGENTS.md.
Keep to the task: make the smallest change that does it in the style of the code around it, at the
cause and not at the symptom. Edit files with `apply_patch` where it is offered. Never undo changes
that are not yours, and run nothing that destroys work unless the user asked for it.
Verify your work with the project's own tests and checks where there are any.
Go on until the task is done, then say briefly what you did and what is left to the user."""


class ReasoningLevel(BaseModel):
    """A reasoning effort that users may select."""

    effort: str
    description: str = ""


class TruncationPolicy(BaseModel):
    """The limit on how much of a tool's output Codex sends back to the model."""

    mode: Literal["tokens"] = "tokens"
    limit: int = _OUTPUT_TOKENS_OF_A_TOOL


class CodexModel(BaseModel):
    """A model that can call tools, with the fields that Codex reads."""

    slug: str
    display_name: str
    description: str | None = None
    default_reasoning_level: str | None = None
    supported_reasoning_levels: list[ReasoningLevel]
    shell_type: Literal["unified_exec"] = "unified_exec"
    visibility: Literal["list"] = "list"
    supported_in_api: Literal[True] = True
    priority: int = Field(description="Position in Codex's menu.")
    base_instructions: str = _INSTRUCTIONS
    support_verbosity: bool = False
    apply_patch_tool_type: Literal["freeform"] = "freeform"
    truncation_policy: TruncationPolicy = TruncationPolicy()
    supports_parallel_tool_calls: bool
    supports_reasoning_summaries: bool
    context_window: int
    input_modalities: list[str]
    experimental_supported_tools: list[str] = []


def codex_models(models: Iterable[ModelObject]) -> Iterator[CodexModel]:
    """Yield the models that can call tools."""
    for place, model in enumerate(models):
        parameters = model.supported_parameters
        if "tools" not in parameters:
            continue
        reasons = "reasoning_effort" in parameters
        read = model.architecture.input_modalities
        yield CodexModel(
            slug=model.id,
            display_name=model.name,
            description=model.description,
            default_reasoning_level="medium" if reasons else None,
            supported_reasoning_levels=[
                ReasoningLevel(effort=effort) for effort in _EFFORTS if reasons
            ],
            priority=place,
            supports_parallel_tool_calls="parallel_tool_calls" in parameters,
            supports_reasoning_summaries=reasons,
            context_window=model.context_length,
            input_modalities=[kind for kind in ("text", "image") if kind in read],
        )
