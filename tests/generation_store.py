"""The generations of tests on DynamoDB, with the bills that outlive records."""

from tollgate.aws.aws_json import AwsCaller
from tollgate.core.clock import DAY_S, Clock
from tollgate.stores.aws.tables import Tables
from tollgate.stores.records.bills import DynamoBillStore
from tollgate.stores.records.generations import DynamoGenerationStore

BILL_RETENTION_S = 400 * DAY_S


def generation_store(
    client: AwsCaller, tables: Tables, clock: Clock, retention_s: int
) -> DynamoGenerationStore:
    bills = DynamoBillStore(client, tables.core, retention_s=BILL_RETENTION_S, clock=clock)
    return DynamoGenerationStore(client, tables.generations, retention_s=retention_s, bills=bills)
