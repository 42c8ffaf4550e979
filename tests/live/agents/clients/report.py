"""The one line that each Python client prints: the model's last words, or the status of a refusal."""

import json
import sys
from collections.abc import Callable

COMMAND_TOOL = {
    "name": "exec_command",
    "description": "Run a command.",
    "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}},
}
PROMPT = "Write one.txt."


def report(ask: Callable[[str, str], str]) -> None:
    """Ask in the format and the scenario of the command line."""
    try:
        shown = {"said": ask(*sys.argv[1:])}
    except Exception as refused:
        status = getattr(refused, "status_code", None)
        shown = {"refused": status or f"{type(refused).__name__}: {refused}"[:300]}
    print(json.dumps(shown))
