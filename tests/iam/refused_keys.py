"""Calls that the streaming function refuses and records."""

from tests.deployment import Deployment, Workspace


async def refuse_keys(deployment: Deployment, workspace: Workspace, path: str) -> None:
    """Call with an unknown key, and with a key of another role."""
    for secret, status in (("sk-tg-nobody", 401), (workspace.management.secret, 403)):
        headers = {"authorization": f"Bearer {secret}"}
        url = f"{deployment.emulator.url}{path}"
        async with deployment.http.post(url, headers=headers, json={}) as refused:
            assert refused.status == status
