"""OpenAI's SDK for Python by chat completions and by Responses."""

from openai import OpenAI
from report import COMMAND_TOOL, PROMPT, report

client = OpenAI(max_retries=0)
MODEL = "acme/agent"


def chat(scenario: str) -> str:
    """Return the last words of a chat."""
    messages = [{"role": "user", "content": PROMPT}]
    if scenario == "stream":
        stream = client.chat.completions.create(model=MODEL, messages=messages, stream=True)
        pieces = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
        return "".join(piece or "" for piece in pieces)
    tools = [{"type": "function", "function": COMMAND_TOOL}] if scenario == "tool" else []
    first = client.chat.completions.create(
        model=MODEL, messages=messages, **({"tools": tools} if tools else {})
    )
    message = first.choices[0].message
    if not tools:
        return message.content
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "done"}
    last = client.chat.completions.create(
        model=MODEL, messages=[*messages, message, result], tools=tools
    )
    return last.choices[0].message.content


def responses(scenario: str) -> str:
    """Return the last words of a response."""
    if scenario == "stream":
        with client.responses.stream(model=MODEL, input=PROMPT) as stream:
            return stream.get_final_response().output_text
    if scenario != "tool":
        return client.responses.create(model=MODEL, input=PROMPT).output_text
    tools = [{"type": "function", **COMMAND_TOOL}]
    items = [{"role": "user", "content": PROMPT}]
    first = client.responses.create(model=MODEL, input=items, tools=tools)
    calls = [item for item in first.output if item.type == "function_call"]
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
        for call in calls
    ]
    items += [*first.output, *results]
    return client.responses.create(model=MODEL, input=items, tools=tools).output_text


report(lambda format_, scenario: {"chat": chat, "responses": responses}[format_](scenario))
