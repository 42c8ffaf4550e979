import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from openai import OpenAI

from tollgate.cli.stack.aws_account import AwsAccount


@dataclass(frozen=True)
class Smoked:
    """A deployment, and what to ask it with."""

    url: str
    key: str
    model: str


@pytest.fixture(scope="session")
def smoked() -> Smoked:
    """TOLLGATE_SMOKE_URL, or the URL of the stack TOLLGATE_SMOKE_STACK."""
    url = os.environ.get("TOLLGATE_SMOKE_URL")
    stack = os.environ.get("TOLLGATE_SMOKE_STACK")
    key = os.environ.get("TOLLGATE_API_KEY")
    if not (url or stack):
        pytest.skip("no deployment is named: `make smoke`")
    if not key:
        pytest.exit("set TOLLGATE_API_KEY to an inference key of the deployment", returncode=1)
    return Smoked(
        url=url or AwsAccount(os.environ.get("AWS_REGION")).stack(str(stack)).url,
        key=key,
        model=os.environ.get("TOLLGATE_SMOKE_MODEL") or "fast",
    )


@pytest.fixture
def client(smoked: Smoked) -> Iterator[OpenAI]:
    with OpenAI(base_url=smoked.url, api_key=smoked.key, max_retries=0, timeout=60) as sdk:
        yield sdk
