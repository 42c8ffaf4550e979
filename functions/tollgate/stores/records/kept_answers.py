"""Answers stored by Idempotency-Key: a claim in DynamoDB, and the answer as an object."""

from contextlib import suppress
from typing import Final

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.idempotency import Claim
from tollgate.stores.aws.decoding import read_number, read_text
from tollgate.stores.aws.expressions import CLAIM_DONE, CLAIM_FREE, CLAIM_MINE
from tollgate.stores.aws.items import AnswerClaimItem
from tollgate.stores.aws.tables import claim_key
from tollgate.stores.rules.object_names import workspace_folder

KEPT_FOR_S: Final = DAY_S
# Time after which a claim without an answer counts as abandoned, because no function runs longer.
ABANDONED_AFTER_S: Final = 900


class DynamoAnswerStore:
    """Implements `engine.replies.kept_answers.AnswerStore`."""

    def __init__(
        self, client: AwsCaller, table: str, objects: ObjectStore, *, clock: Clock
    ) -> None:
        self._client = client
        self._table = table
        self._objects = objects
        self._clock = clock

    async def claim(self, claim: Claim) -> bytes | None:
        """Return the stored answer for this claim; None if the claim now belongs to the caller.

        Raises RequestError if the key was used with another body, or the answer is being generated.
        """
        with refusing_when_unavailable():
            existing = await self._put(claim)
            if existing is None:
                return None
            if read_text(existing, AnswerClaimItem.BODY_HASH) != claim.body_hash:
                raise RequestError(
                    ErrorCode.IDEMPOTENCY_MISMATCH,
                    "This Idempotency-Key was used with another request; use a new one.",
                )
            if read_text(existing, AnswerClaimItem.STATE) == "done":
                answer = await self._objects.get(
                    _object(claim, read_text(existing, AnswerClaimItem.REQUEST))
                )
                if answer is not None:
                    return answer
            age_s = self._clock.now_s() - read_number(existing, AnswerClaimItem.CREATED)
        raise RequestError(
            ErrorCode.IDEMPOTENCY_CONFLICT,
            f"A request with this Idempotency-Key began {age_s:.0f} s ago and has no answer yet.",
            retry_after_s=1,
        )

    async def keep(self, claim: Claim, answer: bytes) -> None:
        """Store the answer for a claim; the answer is not used if another request has taken over
        the claim.
        """
        with refusing_when_unavailable():
            await self._objects.put(_object(claim, claim.request_id), answer)
            values = {":done": string("done"), ":gid": string(claim.request_id)}
            names = {"#st": AnswerClaimItem.STATE}
            request = CLAIM_DONE.build(self._table, _key(claim), values, names)
            with suppress(ConditionFailed):
                await self._client.call("UpdateItem", request)

    async def release(self, claim: Claim) -> None:
        """Delete a claim, unless another owner has taken the claim."""
        with refusing_when_unavailable(), suppress(ConditionFailed):
            await self._client.call(
                "DeleteItem",
                {
                    "TableName": self._table,
                    "Key": _key(claim),
                    "ConditionExpression": CLAIM_MINE,
                    "ExpressionAttributeValues": {":gid": string(claim.request_id)},
                },
            )

    async def _put(self, claim: Claim) -> Item | None:
        """Write the claim, or return the existing claim if it is valid.

        A claim is valid for a day if its answer is stored, and otherwise for 15 minutes.
        """
        now_s = int(self._clock.now_s())
        try:
            await self._client.call(
                "PutItem",
                {
                    "TableName": self._table,
                    "Item": {
                        **_key(claim),
                        AnswerClaimItem.REQUEST: string(claim.request_id),
                        AnswerClaimItem.BODY_HASH: string(claim.body_hash),
                        AnswerClaimItem.STATE: string("running"),
                        AnswerClaimItem.CREATED: number(now_s),
                        AnswerClaimItem.DELETE_AT: number(now_s + KEPT_FOR_S),
                    },
                    "ConditionExpression": CLAIM_FREE,
                    "ExpressionAttributeNames": {
                        "#st": AnswerClaimItem.STATE,
                        "#at": AnswerClaimItem.CREATED,
                        "#ttl": AnswerClaimItem.DELETE_AT,
                    },
                    "ExpressionAttributeValues": {
                        ":running": string("running"),
                        ":dead": number(now_s - ABANDONED_AFTER_S),
                        ":now": number(now_s),
                        ":gid": string(claim.request_id),
                    },
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                },
            )
        except ConditionFailed as failed:
            if failed.item is None:
                raise
            return failed.item
        return None


def _key(claim: Claim) -> Item:
    return claim_key(claim.workspace_id, claim.key_hash)


def _object(claim: Claim, request_id: str) -> str:
    return f"{answers_folder(claim.workspace_id)}{claim.key_hash}/{request_id}"


def answers_folder(workspace_id: str) -> str:
    """Return the key prefix of a workspace's answers; their keys end in the request's id."""
    return f"answers/{workspace_folder(workspace_id)}/"
