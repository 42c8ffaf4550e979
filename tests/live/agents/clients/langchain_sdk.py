"""LangChain by chat completions, by Responses and by Messages."""

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from report import PROMPT, report


@tool
def exec_command(cmd: str) -> str:
    """Run a command."""
    return "done"


def answer(format_: str, scenario: str) -> str:
    """Return the last words of a chat model, or of an agent if there is a tool."""
    if format_ == "messages":
        model = ChatAnthropic(model="acme/agent", max_tokens=100, max_retries=0)
    else:
        model = ChatOpenAI(
            model="acme/agent", use_responses_api=format_ == "responses", max_retries=0
        )
    if scenario == "tool":
        agent = create_agent(model, tools=[exec_command])
        return agent.invoke({"messages": [("user", PROMPT)]})["messages"][-1].text
    if scenario == "stream":
        return "".join(piece.text for piece in model.stream(PROMPT))
    return model.invoke(PROMPT).text


report(answer)
