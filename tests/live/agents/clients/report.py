"""The line that each Python client prints: last words or the status of a refusal, by scenario."""

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
    """Ask in the format that the command line names, once for each of its scenarios."""
    format_, *scenarios = sys.argv[1:]
    shown = {}
    for scenario in scenarios:
        try:
            shown[scenario] = ask(format_, scenario)
        except Exception as refused:
            status = getattr(refused, "status_code", None)
            shown[scenario] = status or f"{type(refused).__name__}: {refused}"[:300]
    print(json.dumps(shown))
