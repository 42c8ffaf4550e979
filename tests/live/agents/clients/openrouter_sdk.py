"""OpenRouter's SDK for Python by chat completions and by Responses."""

import os

from openrouter import OpenRouter
from report import COMMAND_TOOL, PROMPT, report

client = OpenRouter(api_key=os.environ["KEY"], server_url=os.environ["BASE_URL"])
MODEL = "acme/agent"


def chat(scenario: str) -> str:
    """Return the last words of a chat."""
    messages = [{"role": "user", "content": PROMPT}]
    if scenario == "stream":
        with client.chat.send(model=MODEL, messages=messages, stream=True) as stream:
            chunks = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
        return "".join(piece or "" for piece in chunks)
    tools = [{"type": "function", "function": COMMAND_TOOL}] if scenario == "tool" else None
    first = client.chat.send(model=MODEL, messages=messages, tools=tools)
    message = first.choices[0].message
    if tools is None:
        return message.content
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "done"}
    said = message.model_dump(by_alias=True, exclude_none=True)
    last = client.chat.send(model=MODEL, messages=[*messages, said, result], tools=tools)
    return last.choices[0].message.content


def responses(scenario: str) -> str:
    """Return the last words of a response."""
    if scenario == "stream":
        with client.responses.send(model=MODEL, input=PROMPT, stream=True) as stream:
            return "".join(
                event.delta for event in stream if event.type == "response.output_text.delta"
            )
    tools = [{"type": "function", **COMMAND_TOOL, "strict": None}] if scenario == "tool" else None
    first = client.responses.send(model=MODEL, input=PROMPT, tools=tools)
    if tools is None:
        return first.output[-1].content[0].text
    call = next(item for item in first.output if item.type == "function_call")
    sent = call.model_dump(by_alias=True, exclude_none=True)
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
    items = [{"role": "user", "content": PROMPT}, sent, result]
    last = client.responses.send(model=MODEL, input=items, tools=tools)
    return last.output[-1].content[0].text


report(lambda format_, scenario: {"chat": chat, "responses": responses}[format_](scenario))
