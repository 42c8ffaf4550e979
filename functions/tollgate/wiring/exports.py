"""Wires the export of closed days, and the sealing of the audit log."""

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.settings import Settings
from tollgate.stores.records.audit_seals import AuditSealing
from tollgate.stores.records.closed_days import ClosedDays
from tollgate.web.records.day_export import DayExport
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.aws import wire_audit_bucket
from tollgate.wiring.stores import Stores


class Exports(Struct, frozen=True, kw_only=True):
    """The store of closed days, and their export."""

    days: ClosedDays
    export: DayExport


def wire_exports(settings: Settings, stores: Stores, clock: Clock) -> Exports | None:
    """Return the export; None in a deployment without a bucket or folder."""
    if stores.objects is None:
        return None
    days = ClosedDays(stores.client, stores.tables, stores.generations, stores.objects, clock=clock)
    activity = wire_administration(settings, stores, clock).activity
    return Exports(days=days, export=DayExport(days, activity))


async def seal_audit_log(settings: Settings, stores: Stores, clock: Clock) -> int:
    """Seal and export the closed days of the audit log; return the number of days."""
    bucket = wire_audit_bucket(settings, clock)
    try:
        return await AuditSealing(stores.client, stores.tables, bucket, clock=clock).seal_due()
    finally:
        if bucket is not None:
            await bucket.close()
