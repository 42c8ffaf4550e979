"""Reference material that lies beside the recordings, where somebody has it."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest


def beside_recordings(folder: str) -> Path:
    """A sibling folder of the recordings; the test is skipped where there is none."""
    recordings = os.environ.get("TOLLGATE_RECORDINGS")
    if not recordings:
        pytest.skip("TOLLGATE_RECORDINGS is not set")
    found = Path(recordings).resolve().parent / folder
    if not found.is_dir():
        pytest.skip(f"no {folder} beside the recordings")
    return found


@cache
def _json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def published_schema(name: str) -> Any:
    """A JSON Schema of a public API."""
    schema = _json(beside_recordings("schemas") / f"{name}.schema.json")
    types = schema.get("$defs", {})
    # Recorded answers of OpenAI have null where its schemas permit only a value.
    if "ResponseUsage" in types:
        types["ModelResponseProperties"]["properties"]["user"] = {"type": ["string", "null"]}
        types["ResponseUsage"]["type"] = ["object", "null"]
    if answer := types.get("CreateChatCompletionResponse"):
        answer["properties"]["system_fingerprint"] = {"type": ["string", "null"]}
    return schema


def aws_service_model(name: str) -> Any:
    """The service model of an AWS API, in botocore's form."""
    return _json(beside_recordings("schemas") / f"aws.{name}.service-2.json")


def client_requests(path_suffix: str) -> list[tuple[str, Any]]:
    """What real clients sent to paths that end so: a name and the body of each request."""
    return [
        (f"{path.stem}:{request['scenario']}:{request['step']}", request["json"])
        for path in sorted(beside_recordings("clients").glob("*.json"))
        for request in _json(path)["requests"]
        if request["path"].endswith(path_suffix)
    ]


def google_schema(name: str) -> dict[str, Any]:
    """A type of Google's aiplatform v1 as JSON Schema, from its discovery document.

    Google's servers refuse fields that they do not know, which a discovery document leaves unsaid.
    """
    path = beside_recordings("schemas") / "google.aiplatform.v1.generateContent.discovery.json"
    types = _json(path)["schemas"]
    prefix = "GoogleCloudAiplatformV1"
    return {
        "$defs": {name: _from_discovery(type_) for name, type_ in types.items()},
        "$ref": f"#/$defs/{prefix}{name}",
    }


def _from_discovery(type_: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in type_:
        return {"$ref": f"#/$defs/{type_['$ref']}"}
    if type_.get("type") == "any":
        return {}
    schema = {key: type_[key] for key in ("type", "enum") if key in type_}
    if "items" in type_:
        schema["items"] = _from_discovery(type_["items"])
    if isinstance(type_.get("additionalProperties"), dict):
        schema["additionalProperties"] = _from_discovery(type_["additionalProperties"])
    elif "properties" in type_:
        properties = {name: _from_discovery(each) for name, each in type_["properties"].items()}
        schema |= {"properties": properties, "additionalProperties": False}
    return schema
