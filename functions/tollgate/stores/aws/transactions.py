"""Transactions of DynamoDB: writes that are all applied or none, and the actions they are made of.

Kept apart from `aws_json`, because a function that only serves generations sends none of these.
"""

from collections.abc import Iterable

from tollgate.core.ids import IdSource
from tollgate.stores.aws.attributes import Item
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.expressions import IF_ABSENT


def put_if_absent(table: str, item: Item) -> object:
    """Return the action that puts an item if there is none with its key."""
    return {"Put": {"TableName": table, "Item": item, "ConditionExpression": IF_ABSENT}}


async def transact(client: AwsCaller, ids: IdSource, actions: Iterable[object]) -> None:
    """Apply all of the actions; raise TransactionCancelled, and apply none, where one must fail."""
    await client.call(
        "TransactWriteItems",
        # The token lets the client repeat the call after a lost reply.
        {"ClientRequestToken": ids.new_id(), "TransactItems": list(actions)},
    )
