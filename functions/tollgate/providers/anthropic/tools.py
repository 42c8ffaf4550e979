"""Tools, the choice among them, and JSON output as Anthropic takes them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from tollgate.core.request import GenerationRequest, SchemaOutput, Tool, ToolChoice
from tollgate.providers.answer_tool import answer_tool
from tollgate.providers.anthropic.json_schema import enforceable
from tollgate.providers.anthropic.turns import Block, marked
from tollgate.providers.claude import Claude


@dataclass(slots=True)
class Tooling:
    """What goes out as `tools`, `tool_choice` and `output_config.format`.

    `adapted` names what the caller asked for and does not get.
    """

    tools: list[Block] = field(default_factory=list)
    choice: Block = field(default_factory=dict)
    output_format: Block = field(default_factory=dict)
    adapted: list[str] = field(default_factory=list)

    @property
    def forces_a_call(self) -> bool:
        return self.choice.get("type") in {"any", "tool"}


def tooling(request: GenerationRequest, claude: Claude, called: Sequence[str]) -> Tooling:
    """The tools offered, those that the history needs, and the form of the answer."""
    made = Tooling()
    # A history of calls needs tools; those are only told of, not offered.
    offered = request.tools or tuple(Tool(name=name) for name in called)
    choice = request.tool_choice if request.tools else None
    if offered and not request.tools:
        choice = ToolChoice(mode="none")
    may_force = claude.forced_calls_while_thinking or claude.thinking_off != "never"
    if choice is not None and choice.mode in {"required", "named"} and not may_force:
        made.adapted.append("tool_choice")
        choice = ToolChoice(mode="auto")
    made.tools = [_tool(tool, claude, made.adapted) for tool in offered]
    if choice is not None:
        made.choice = _choice(choice)
    if request.output_format is not None:
        _add_output(made, request, claude, may_force=may_force)
    if request.parallel_tool_calls is False and request.tools:
        made.choice = made.choice or {"type": "auto"}
        if made.choice["type"] != "none":
            made.choice["disable_parallel_tool_use"] = True
    return made


def _add_output(
    made: Tooling, request: GenerationRequest, claude: Claude, *, may_force: bool
) -> None:
    """Hold the answer to its form: natively where that is possible, else by a forced call."""
    wanted = request.output_format
    if wanted is None:
        return
    if isinstance(wanted, SchemaOutput) and claude.json_schema:
        schema = enforceable(wanted.schema)
        if schema is not None:
            made.output_format = {"type": "json_schema", "schema": schema}
            return
    if made.forces_a_call:
        # The caller wants a call now: the answer, and its form, come in a later turn.
        return
    callable_now = request.tools and made.choice.get("type") != "none"
    answer = _tool(answer_tool(wanted), claude, made.adapted)
    made.tools = [*made.tools, answer]
    if not may_force:
        made.choice = {"type": "auto"}
    elif callable_now:
        made.choice = {"type": "any"}
    else:
        made.choice = {
            "type": "tool",
            "name": answer["name"],
            "disable_parallel_tool_use": True,
        }


def _tool(tool: Tool, claude: Claude, adapted: list[str]) -> Block:
    schema: dict[str, JsonValue] = {"type": "object", **tool.parameters}
    block: Block = {"name": tool.name, "input_schema": schema}
    if tool.description:
        block["description"] = tool.description
    if tool.strict:
        closed = enforceable(schema) if tool.parameters and claude.json_schema else None
        if closed is not None:
            block["input_schema"], block["strict"] = closed, True
        elif "tools.strict" not in adapted:
            adapted.append("tools.strict")
    return marked(block, tool.cache)


def _choice(choice: ToolChoice) -> Block:
    match choice.mode:
        case "named":
            return {"type": "tool", "name": choice.name}
        case "required":
            return {"type": "any"}
        case mode:
            return {"type": mode}
