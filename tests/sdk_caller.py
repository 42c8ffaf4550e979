"""AWS's own SDK in the place of our client: whether each of us means the same by every call.

aioboto3 checks each request against AWS's model of the service before it is sent, which no emulator
does, and reads each reply by it.
"""

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import aioboto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError

from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsReply
from tollgate.aws.failures import (
    CancellationReason,
    ConditionFailed,
    StoreError,
    StoreRejected,
    TransactionCancelled,
)


class SdkCaller:
    """Implements `stores.aws_json.AwsCaller`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        try:
            reply = await getattr(self._client, xform_name(operation))(**_with_bytes(payload))
        except ClientError as refused:
            raise _failure(refused.response) from refused
        read: AwsReply = _with_base64(reply)
        return read


@asynccontextmanager
async def sdk_caller(endpoint_url: str, region: str) -> AsyncIterator[SdkCaller]:
    """The SDK's client of DynamoDB, which sends everything once."""
    once = Config(retries={"total_max_attempts": 1})
    async with _session(region).client(
        "dynamodb", endpoint_url=endpoint_url, config=once
    ) as client:
        yield SdkCaller(client)


@cache
def _session(region: str) -> aioboto3.Session:
    """One for all: it reads the models of the services, which takes a tenth of a second."""
    return aioboto3.Session(
        aws_access_key_id="test", aws_secret_access_key="test", region_name=region
    )


def _failure(response: Mapping[str, Any]) -> StoreError:
    code = response["Error"]["Code"]
    if code == "ConditionalCheckFailedException":
        item = response.get("Item")
        return ConditionFailed(None if item is None else _with_base64(item))
    if code == "TransactionCanceledException":
        reasons = response["CancellationReasons"]
        return TransactionCancelled(
            tuple(CancellationReason(it.get("Code", "None"), it.get("Item")) for it in reasons)
        )
    return StoreRejected(code, response["Error"]["Message"])


def _with_bytes(value: Any) -> Any:
    """Binary values as the SDK takes them; on the wire they are base64."""
    match value:
        case {"B": str(encoded)}:
            return {"B": base64.b64decode(encoded)}
        case Mapping():
            return {name: _with_bytes(each) for name, each in value.items()}
        case list() | tuple():
            return [_with_bytes(each) for each in value]
        case _:
            return value


def _with_base64(value: Any) -> Any:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {name: _with_base64(each) for name, each in value.items()}
        case list():
            return [_with_base64(each) for each in value]
        case _:
            return value
