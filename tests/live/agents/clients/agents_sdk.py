"""OpenAI's Agents SDK for Python by chat completions and by Responses."""

import asyncio

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from report import PROMPT, report


@function_tool
def exec_command(cmd: str) -> str:
    """Run a command."""
    return "done"


async def answer(format_: str, scenario: str) -> str:
    """Return the last words of an agent."""
    kind = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}[format_]
    tools = [exec_command] if scenario == "tool" else []
    model = kind("acme/agent", AsyncOpenAI(max_retries=0))
    agent = Agent(name="agent", instructions="Be brief.", tools=tools, model=model)
    if scenario != "stream":
        return (await Runner.run(agent, PROMPT)).final_output
    running = Runner.run_streamed(agent, PROMPT)
    async for _ in running.stream_events():
        pass
    return running.final_output


set_tracing_disabled(True)
report(lambda format_, scenario: asyncio.run(answer(format_, scenario)))
