"""Queries for the items in a partition whose sort keys are in a range."""

from collections.abc import AsyncIterator

from tollgate.aws.attributes import Item, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.stores.aws.expressions import ROWS_BETWEEN
from tollgate.stores.aws.tables import query_rows


async def pages_between(
    client: AwsCaller, table: str, partition: str, *, low: str, high: str, consistent: bool = False
) -> AsyncIterator[list[Item]]:
    """Yield the items whose sort keys lie in [low, high], in order, one reply at a time."""
    query: dict[str, object] = {
        "TableName": table,
        "ConsistentRead": consistent,
        "KeyConditionExpression": ROWS_BETWEEN,
        "ExpressionAttributeValues": {
            ":pk": string(partition),
            ":low": string(low),
            ":high": string(high),
        },
    }
    while True:
        reply = await client.call("Query", query)
        yield reply["Items"]
        if "LastEvaluatedKey" not in reply:
            return
        query["ExclusiveStartKey"] = reply["LastEvaluatedKey"]


async def rows_between(
    client: AwsCaller, table: str, partition: str, *, low: str, high: str, consistent: bool = False
) -> list[Item]:
    """Return the items whose sort keys lie in [low, high], in order."""
    pages = pages_between(client, table, partition, low=low, high=high, consistent=consistent)
    return [item async for page in pages for item in page]


async def all_rows(client: AwsCaller, table: str, partition: str, prefix: str) -> list[Item]:
    """Return all items of a partition whose sort key begins with `prefix`, in order."""
    rows, after = await query_rows(client, table, partition, prefix)
    while after is not None:
        more, after = await query_rows(client, table, partition, prefix, after=after)
        rows += more
    return rows
