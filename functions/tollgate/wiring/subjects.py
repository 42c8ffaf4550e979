"""Wires the rounds of erasures and legal holds."""

from tollgate.core.clock import DAY_S, Clock
from tollgate.core.ids import IdSource
from tollgate.settings import Settings
from tollgate.stores.subjects.erasure import ErasureRounds
from tollgate.stores.subjects.jobs import JobErasure
from tollgate.stores.subjects.people import PeopleErasure
from tollgate.stores.subjects.preservation import Preservation
from tollgate.stores.subjects.rounds import SubjectRounds
from tollgate.stores.subjects.standing import DynamoSubjectStore
from tollgate.stores.subjects.stored import StoredRecords
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.files import wire_files
from tollgate.wiring.stores import Stores


def wire_subjects(settings: Settings, stores: Stores, clock: Clock) -> SubjectRounds:
    """Return the rounds of erasures and legal holds for the tables of `stores`."""
    client, tables, retention_s = stores.client, stores.tables, settings.record_days * DAY_S
    files = wire_files(settings, stores, clock)
    store = DynamoSubjectStore(client, tables, ids=IdSource(clock), clock=clock)
    records = StoredRecords(
        client,
        tables.generations,
        stores.generations,
        tuple(log for log in (stores.contents, stores.responses) if log is not None),
        retention_s=retention_s,
        clock=clock,
    )
    people = PeopleErasure(
        client,
        tables,
        store,
        wire_administration(settings, stores, clock).keys,
        files=None if files is None else files.store,
        clock=clock,
    )
    objects = stores.objects
    jobs = None
    if objects is not None:
        jobs = JobErasure(
            client,
            tables,
            store,
            objects=objects,
            files=None if files is None else files.store,
            clock=clock,
        )
    return SubjectRounds(
        client=client,
        table=tables.core,
        erasures=ErasureRounds(store, records, people, objects, jobs=jobs, clock=clock),
        preservation=Preservation(
            client,
            tables,
            store,
            records,
            objects=objects,
            retention_s=retention_s,
            clock=clock,
        ),
        files=None if files is None else files.store,
    )
