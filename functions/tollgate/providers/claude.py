"""What the generations of Claude take, stated per model in routing.yaml: never told by its name.

Sources: recorded refusals, Anthropic's migration guides and
https://openrouter.ai/docs/cookbook/evaluate-and-optimize/model-migrations (seen 2026-11-21).
"""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

ClaudeEffort = Literal["low", "medium", "high", "xhigh", "max"]
# Where the Messages API is spoken: Anthropic's own, Vertex AI, Bedrock's InvokeModel.
ClaudeCarrier = Literal["anthropic", "vertex", "bedrock"]

EFFORTS: Final[tuple[ClaudeEffort, ...]] = ("low", "medium", "high", "xhigh", "max")


class Claude(BaseModel):
    """One generation of Claude; the defaults are what the newest ones have in common.

    `thinking` is how it is asked for: by a token budget up to 4.5, by effort from 4.7 on, 4.6 takes
    both. `thinking_off` is how it is declined: leaving it out, by a word of the API, or not at all.
    `sampling` says whether temperature and top_p are taken together, one of them, or neither.
    `prefill`: a last assistant message is continued. `system_turns`: system messages may stand
    between others. `json_schema`: answers and strict tools are held to a schema.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    thinking: Literal["none", "budget", "both", "adaptive"] = "adaptive"
    thinking_off: Literal["absent", "disabled", "between_tools", "never"] = "never"
    efforts: tuple[ClaudeEffort, ...] = EFFORTS
    forced_calls_while_thinking: bool = False
    sampling: Literal["both", "one", "none"] = "none"
    prefill: bool = False
    system_turns: bool = False
    json_schema: bool = True
