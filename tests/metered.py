"""A client to DynamoDB that counts write units, failed conditions and waiting calls.

Units are what the engine reports (`ReturnConsumedCapacity`): ministack and DynamoDB Local both
round items up to whole KB, and count transactions twice, as DynamoDB does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.aws.failures import ConditionFailed

_READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan"})


@dataclass
class Metered:
    """Passes calls on; `rounds` are the operations, together where none waited for another."""

    client: AwsCaller
    rounds: list[list[str]] = field(default_factory=list)
    write_units: float = 0.0
    conditions_failed: int = 0
    _answered: int = 0

    @property
    def reads(self) -> list[str]:
        return [operation for round_ in self.rounds for operation in round_ if operation in _READS]

    def reset(self) -> None:
        self.rounds, self._answered = [], 0
        self.write_units, self.conditions_failed = 0.0, 0

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        place = self._answered
        if place == len(self.rounds):
            self.rounds.append([])
        self.rounds[place].append(operation)
        try:
            reply = await self.client.call(
                operation, {**payload, "ReturnConsumedCapacity": "TOTAL"}, attempts_max=attempts_max
            )
        except ConditionFailed:
            self.conditions_failed += 1
            raise
        finally:
            self._answered = max(self._answered, place + 1)
        if operation not in _READS:
            consumed = reply["ConsumedCapacity"]
            tables = consumed if isinstance(consumed, list) else [consumed]
            self.write_units += sum(table["CapacityUnits"] for table in tables)
        return reply
