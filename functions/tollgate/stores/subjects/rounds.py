"""One round of erasures and legal holds over all workspaces."""

import logging
from typing import Final

from msgspec import Struct

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.core.errors import GatewayError
from tollgate.stores.aws.visits import visit_workspaces
from tollgate.stores.files.files import DynamoFileStore
from tollgate.stores.rules.reports import SubjectReport
from tollgate.stores.subjects.erasure import ErasureRounds
from tollgate.stores.subjects.preservation import Preservation

_log: Final = logging.getLogger(__name__)
_AT_ONCE: Final = 4


class SubjectRounds(Struct, frozen=True, kw_only=True):
    """Preserves what legal holds cover, then carries out erasures; workspaces fail separately."""

    client: AwsCaller
    table: str
    erasures: ErasureRounds
    preservation: Preservation
    files: DynamoFileStore | None

    async def run(self) -> SubjectReport:
        """Run one round, and return its counts; raise LedgerError without a list of workspaces."""
        with refusing_when_unavailable():
            reports = await visit_workspaces(self.client, self.table, self._visit, at_once=_AT_ONCE)
        return sum(reports, SubjectReport())

    async def aclose(self) -> None:
        """Close the connections to the files."""
        if self.files is not None:
            await self.files.aclose()

    async def _visit(self, workspace_id: str) -> SubjectReport:
        try:
            preserved = await self.preservation.run(workspace_id)
            return preserved + await self.erasures.run(workspace_id)
        except GatewayError as failed:
            _log.warning("legal holds of %s failed: %s", workspace_id, failed.message)
            return SubjectReport(failed=1)
