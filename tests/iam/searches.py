"""The tour's search: an engine's key is a secret that the chat function reads."""

from tests.deployment import Deployment, Workspace
from tests.upstream import Script
from tollgate.routing.routing_file import Routing
from tollgate.routing.tool_sections import ServerToolsSection


def searching_at(url: str, routing: Routing) -> ServerToolsSection:
    """The tools of a routing, with the engine at this address."""
    search = routing.server_tools.web_search
    assert search is not None
    nearby = search.model_copy(update={"base_url": url})
    return routing.server_tools.model_copy(update={"web_search": nearby})


async def search_the_web(deployment: Deployment, workspace: Workspace, path: str) -> None:
    """Have a model search by the engine, whose key is a secret too."""
    found = {"results": [{"url": "https://a.example", "title": "A", "content": "Hello"}]}
    beta = deployment.upstreams.beta
    beta.reset()
    beta.enqueue(Script.json(200, found))
    body = {
        "model": "test/tools",
        "messages": [{"role": "user", "content": "Hello"}],
        "plugins": [{"id": "web_search"}],
    }
    answer = await deployment.ask("POST", path, workspace.inference, body=body)
    assert answer.status == 200, answer.body
    assert [received.path for received in beta.received] == ["/search"]
    assert beta.received[0].headers["authorization"] == "Bearer synthetic"
