"""Other gateways: the command that starts each, and the requests that each takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.children import TOP

_HERE: Final = Path(__file__).parent
_KEY: Final = "sk-bench-0123456789abcdef"
_TOOLS: Final = TOP / ".tools"
MODELS: Final = ("quick", "short", "paced")
"""Models of bench/upstream.py that the comparison asks for."""


@dataclass(frozen=True, kw_only=True)
class Door:
    """The form of requests for the models of one provider."""

    prefix: str
    """The beginning of each model's name."""
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A gateway of somebody else, installed by `make compare` from its registry."""

    name: str
    version: str
    command: Sequence[str]
    """The command; `{port}` is the port to listen on, `{folder}` a folder with `files`."""
    environment: Mapping[str, str]
    files: Mapping[str, str]
    """Files by name; `{upstream}` is the address of the mock upstream."""
    sse: Door
    bedrock: Door


def _litellm_models() -> str:
    lines = ["model_list:"]
    bedrock = "aws_region_name: us-east-1, aws_bedrock_runtime_endpoint: {upstream}"
    for model in MODELS:
        lines += (
            f"  - model_name: {model}",
            f"    litellm_params: {{model: openai/{model}, api_base: {{upstream}}/v1, api_key: x}}",
            f"  - model_name: bedrock-{model}",
            f"    litellm_params: {{model: bedrock/converse/{model}, {bedrock}}}",
        )
    return "\n".join([*lines, f"general_settings: {{master_key: {_KEY}}}", ""])


_PORTKEY: Final = {"authorization": "Bearer x"}
LITELLM: Final = Peer(
    name="LiteLLM",
    version="1.108.7",
    command=(
        *(str(_TOOLS / "litellm/bin/litellm"), "--config", "{folder}/config.yaml"),
        *("--host", "127.0.0.1", "--port", "{port}", "--num_workers", "1", "--telemetry", "False"),
    ),
    # These settings are those that LiteLLM recommends for production.
    environment={
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOG": "ERROR",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "NO_DOCS": "True",
        "DISABLE_ADMIN_UI": "True",
    },
    files={"config.yaml": _litellm_models()},
    sse=Door(prefix="", headers={"authorization": f"Bearer {_KEY}"}),
    bedrock=Door(prefix="bedrock-", headers={"authorization": f"Bearer {_KEY}"}),
)
PORTKEY: Final = Peer(
    name="Portkey",
    version="1.15.2",
    command=(
        *("node", "--require", str(_HERE / "portkey_loopback.cjs")),
        str(_TOOLS / "portkey/node_modules/@portkey-ai/gateway/build/start-server.js"),
        *("--port={port}", "--headless"),
    ),
    environment={"NODE_ENV": "production"},
    files={},
    sse=Door(
        prefix="",
        headers={
            **_PORTKEY,
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": "{upstream}/v1",
        },
    ),
    bedrock=Door(
        prefix="",
        headers={
            **_PORTKEY,
            "x-portkey-provider": "bedrock",
            "x-portkey-custom-host": "{upstream}",
            "x-portkey-aws-access-key-id": "bench",
            "x-portkey-aws-secret-access-key": "bench",
            "x-portkey-aws-region": "us-east-1",
        },
    ),
)
PEERS: Final = {peer.name: peer for peer in (LITELLM, PORTKEY)}
