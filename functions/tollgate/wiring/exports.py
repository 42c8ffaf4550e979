"""Wires the export of closed days, which most deployments do not use."""

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.settings import Settings
from tollgate.stores.records.closed_days import ClosedDays
from tollgate.web.records.day_export import DayExport
from tollgate.wiring.administration import wire_administration
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
