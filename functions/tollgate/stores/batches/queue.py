"""The queue in SQS that wakes the batch function."""

from msgspec import MsgspecError, json

from tollgate.aws.aws_json import AwsJson
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.stores.ports.batches import BatchPlace


class SqsBatchQueue:
    """Implements `stores.ports.batches.BatchQueue`."""

    def __init__(self, client: AwsJson, url: str) -> None:
        self._client = client
        self._url = url

    async def send(self, place: BatchPlace, *, delay_s: int = 0) -> None:
        with refusing_when_unavailable():
            await self._client.call(
                "SendMessage",
                {
                    "QueueUrl": self._url,
                    "MessageBody": json.encode(place).decode(),
                    "DelaySeconds": delay_s,
                },
            )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


def read_message(body: str) -> BatchPlace:
    """Return the batch that a message names; raise ValueError if the message is corrupt."""
    try:
        return json.decode(body, type=BatchPlace)
    except MsgspecError as corrupt:
        raise ValueError(f"the message names no batch: {corrupt}") from corrupt
