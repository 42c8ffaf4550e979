"""Anthropic's SDK for Python by Messages."""

from anthropic import Anthropic
from report import COMMAND_TOOL, PROMPT, report

client = Anthropic(max_retries=0)


def messages(scenario: str) -> str:
    """Return the last words of a message."""
    turns = [{"role": "user", "content": PROMPT}]
    settings = {"model": "acme/agent", "max_tokens": 100, "messages": turns}
    if scenario == "stream":
        with client.messages.stream(**settings) as stream:
            return stream.get_final_text()
    if scenario != "tool":
        return client.messages.create(**settings).content[-1].text
    schema = {"input_schema": COMMAND_TOOL["parameters"]}
    named = {name: COMMAND_TOOL[name] for name in ("name", "description")}
    settings["tools"] = [named | schema]
    first = client.messages.create(**settings)
    call = first.content[-1]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "done"}
    turns += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result]},
    ]
    return client.messages.create(**settings).content[-1].text


report(lambda format_, scenario: messages(scenario))
