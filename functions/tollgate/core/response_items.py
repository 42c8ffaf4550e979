"""The items of OpenAI's Responses API that the gateway knows, and how it treats each one.

Items of other types are passed on unread, to providers that use this format and back to the client.
https://platform.openai.com/docs/api-reference/responses (2026-11-27)
"""

from collections.abc import Mapping
from typing import Final, Literal

ItemKind = Literal[
    "message",
    "function_call",
    "custom_tool_call",
    "output",
    "reasoning",
    "tools",
    "reference",
    "compaction",
    "trigger",
    "run",
    "search",
    "left_out",
    "refused",
]

# Calls of hosted tools mean nothing to a model without those tools, so they are dropped from the
# input. Items of tools that the gateway refuses are refused as well.
ITEM_KINDS: Final[Mapping[str, ItemKind]] = {
    "additional_tools": "tools",
    "apply_patch_call": "refused",
    "apply_patch_call_output": "refused",
    "code_interpreter_call": "left_out",
    "compaction": "compaction",
    "compaction_trigger": "trigger",
    "computer_call": "refused",
    "computer_call_output": "refused",
    "custom_tool_call": "custom_tool_call",
    "custom_tool_call_output": "output",
    "file_search_call": "left_out",
    "function_call": "function_call",
    "function_call_output": "output",
    "image_generation_call": "left_out",
    "item_reference": "reference",
    "local_shell_call": "refused",
    "local_shell_call_output": "refused",
    "mcp_approval_request": "refused",
    "mcp_approval_response": "refused",
    "mcp_call": "run",
    "mcp_list_tools": "left_out",
    "message": "message",
    "reasoning": "reasoning",
    "shell_call": "refused",
    "shell_call_output": "refused",
    "tool_search_call": "left_out",
    "tool_search_output": "tools",
    "web_search_call": "search",
}
