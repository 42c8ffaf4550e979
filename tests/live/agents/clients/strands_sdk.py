"""Strands Agents by chat completions, by Responses and by Messages."""

import os

from report import PROMPT, report
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel


@tool
def exec_command(cmd: str) -> str:
    """Run a command."""
    return "done"


def answer(format_: str, scenario: str) -> str:
    """Return the last words of an agent, which streams in every scenario."""
    arguments = {"base_url": os.environ["OPENAI_BASE_URL"], "max_retries": 0}
    if format_ == "messages":
        arguments["base_url"] = os.environ["ANTHROPIC_BASE_URL"]
        model = AnthropicModel(client_args=arguments, model_id="acme/agent", max_tokens=100)
    else:
        kind = OpenAIModel if format_ == "chat" else OpenAIResponsesModel
        model = kind(client_args=arguments, model_id="acme/agent")
    tools = [exec_command] if scenario == "tool" else []
    agent = Agent(model=model, tools=tools, callback_handler=None)
    return str(agent(PROMPT)).strip()


report(answer)
