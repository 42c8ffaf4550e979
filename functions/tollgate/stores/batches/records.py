"""The records that show whether a line was served before its worker died."""

from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.records.generations import DynamoGenerationStore


class DynamoLineRecords:
    """Implements `stores.ports.batches.LineRecords`."""

    def __init__(self, generations: DynamoGenerationStore) -> None:
        self._generations = generations

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        return await self._generations.get(workspace_id, generation_id)

    async def decide(self, record: GenerationRecord) -> GenerationRecord:
        with refusing_when_unavailable():
            return await self._generations.put_if_absent(record)
