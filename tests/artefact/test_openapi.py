"""The description of the api, from the file that was built with it.

Keeps C6.
"""

from pathlib import Path

import pytest

from tests.deployment import Deployment


@pytest.mark.asyncio(loop_scope="session")
async def test_c6_the_api_serves_the_description_that_it_was_built_with(
    deployment: Deployment, for_host: Path
) -> None:
    served = await deployment.ask("GET", "/v1/openapi.json")
    assert served.status == 200
    assert served.body == (for_host / "ApiFunction" / "openapi.json").read_bytes()
