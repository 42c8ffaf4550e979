"""Bugs as edits of the source: each is what somebody might write, and each must be caught."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One edit of one file; the text must be there exactly once."""

    name: str
    path: str
    text: str
    instead: str
    # The part of a harness that shows it, where the harness has parts.
    shown_by: str = ""

    def apply(self, root: Path) -> None:
        """Edit the copy of the project that lies in `root`."""
        path = root / "functions" / "tollgate" / self.path
        source = path.read_text()
        if source.count(self.text) != 1:
            raise ValueError(f"{self.name}: the text is there {source.count(self.text)} times")
        path.write_text(source.replace(self.text, self.instead))


_WALLET_HOLD: Final = '"lk = :zero AND av >= :a AND attribute_not_exists(h.#h) AND size(h) < :max"'

MUTANTS: Final = (
    Mutant(
        name="settle without condition",
        path="stores/aws/expressions.py",
        text='"SET av = av + :d, sp = sp + :c REMOVE h.#h", "h.#h = :a"',
        instead='"SET av = av + :d, sp = sp + :c REMOVE h.#h", "h.#h = :a OR lk < :a"',
    ),
    Mutant(
        name="hold without attribute_not_exists",
        path="stores/aws/expressions.py",
        text=_WALLET_HOLD,
        instead='"lk = :zero AND av >= :a AND size(h) < :max"',
    ),
    Mutant(
        name="record overwritten",
        path="stores/records/generations.py",
        text='"ConditionExpression": IF_ABSENT,',
        instead='"ConditionExpression": f"{IF_ABSENT} OR attribute_exists(pk)",',
    ),
    Mutant(
        name="sweeper releases without deciding",
        path="stores/money/sweeper.py",
        text="record = await self.generations.put_if_absent(lost_record(expired))",
        instead="record = lost_record(expired)",
    ),
    Mutant(
        name="hold re-sent under the same id",
        path="stores/money/ledger.py",
        text="hold_id = first_id if first_id and attempt == 0 else self._ids.new_id()",
        instead="hold_id = first_id = first_id or self._ids.new_id()",
    ),
    Mutant(
        name="state settled without condition",
        path="stores/keys/hold_expressions.py",
        text='"h.#h = :a" + ("" if counters else " AND attribute_not_exists(#q)"),',
        instead='"h.#h = :a OR us >= :c",',
    ),
    Mutant(
        name="quota settled at no cost",
        path="stores/money/ledger.py",
        text="quotas=hold.quotas,\n                use=use,",
        instead="quotas=hold.quotas,",
    ),
    Mutant(
        name="session settled without condition",
        path="stores/keys/session_expressions.py",
        text='n = n - :n REMOVE h.#h", "h.#h = :a"',
        instead='n = n - :n REMOVE h.#h", "h.#h = :a OR cm >= :d"',
    ),
    Mutant(
        name="level left out of the sweep",
        path="stores/money/sweeper.py",
        text="for state in expired.states:",
        instead='for state in (it for it in expired.states if it.owner.level == "key"):',
    ),
    Mutant(
        name="level settled at no cost",
        path="stores/money/ledger.py",
        text="held_nano_usd=level.nano_usd,\n                    cost_nano_usd=cost_nano_usd,",
        instead="held_nano_usd=level.nano_usd,\n                    cost_nano_usd=0,",
    ),
    Mutant(
        name="slice that pays left out of the record",
        path="stores/ports/base.py",
        text='if level.slice and level.level != "session"',
        instead='if level.slice < 0 and level.level != "session"',
    ),
    Mutant(
        name="part of a limit without its bucket",
        path="stores/keys/state_writes.py",
        text='values[f":more{limit}"] = number(amount - old_amount)',
        instead='values[f":more{limit}"] = number(0)',
    ),
    Mutant(
        name="hold without balance check",
        path="stores/aws/expressions.py",
        text=_WALLET_HOLD,
        instead='"lk = :zero AND attribute_not_exists(h.#h) AND size(h) < :max"',
        shown_by="starved",
    ),
)

# Bugs of administration, which a crash or a race of it shows.
ADMINISTRATION_MUTANTS: Final = (
    Mutant(
        name="entry before its change",
        shown_by="key.change",
        path="stores/keys/administration.py",
        text="digests = await self._writes.change_rows(\n"
        "            pointer, new, *renaming, *joins, *entry, pending=pending\n"
        "        )",
        instead="await self._writes.transact(*entry)\n"
        "        digests = await self._writes.change_rows("
        "pointer, new, *renaming, *joins, pending=pending)",
    ),
    Mutant(
        name="entry after its change",
        shown_by="key.delete",
        path="stores/keys/administration.py",
        text="digests = await self._writes.delete_secrets(pointer, *entry)",
        instead="digests = await self._writes.delete_secrets(pointer)\n"
        "                        await self._writes.transact(*entry)",
    ),
    Mutant(
        name="change without an entry",
        shown_by="workspace.lock",
        path="stores/money/workspaces.py",
        text="await self._decide(workspace_id, WORKSPACE_LOCK, values, entry)",
        instead="await self._decide(workspace_id, WORKSPACE_LOCK, values, ())",
    ),
    Mutant(
        name="decided change not completed",
        shown_by="key.change",
        path="stores/money/workspace_maintenance.py",
        text="await self.key_writes.apply(pointer)",
        instead="continue",
    ),
    Mutant(
        name="decided change of a level not completed",
        shown_by="team.change",
        path="stores/money/workspace_maintenance.py",
        text="await self.levels.complete(workspace_id)",
        instead="await self.levels.complete(workspace_id[:0])",
    ),
    Mutant(
        name="level without an entry",
        shown_by="team.create",
        path="stores/people/levels.py",
        text='actions += self._entry(by, "create", row, after=settings)',
        instead="actions += []",
    ),
    Mutant(
        name="key changed by two at once",
        shown_by="race",
        path="stores/aws/expressions.py",
        text='"{_NOT_DELETED} AND rev = :samerev"',
        instead='"{_NOT_DELETED} AND rev >= :samerev"',
    ),
)

# Bugs of work that is no chat, or that its requests show too.
WORK_MUTANTS: Final = (
    Mutant(
        name="batches billed by one of them",
        shown_by="embedding",
        path="engine/work/batches.py",
        text="total = reduce(Usage.plus, usages)",
        instead="total = usages[-1]",
    ),
    Mutant(
        name="settled before it is decided",
        shown_by="transcription",
        path="stores/money/ledger.py",
        text="            decided = await repeat_while_refused(\n"
        "                partial(self._generations.put_if_absent, record),\n"
        "                self._clock,\n"
        "                jitter=self._ids.uniform,\n"
        "                for_s=_DECIDES_FOR_S,\n"
        "                is_idempotent=True,\n"
        "            )\n"
        "        await self._settle_sides(hold, use_of(decided))\n"
        "        return decided\n",
        instead="            await self._settle_sides(hold, use_of(record))\n"
        "            return await self._generations.put_if_absent(record)\n",
    ),
    Mutant(
        name="thousands of units billed as ones",
        shown_by="moderation",
        path="routing/price.py",
        text="self.text_units * _THOUSANDS_PER_RATE",
        instead="self.text_units",
    ),
    Mutant(
        name="sweeper releases without deciding",
        shown_by="speech",
        path="stores/money/sweeper.py",
        text="record = await self.generations.put_if_absent(lost_record(expired))",
        instead="record = lost_record(expired)",
    ),
)

# Bugs of rounds, which a process that dies or a caller who leaves between them shows.
ROUND_MUTANTS: Final = (
    Mutant(
        name="usage of the last round alone",
        shown_by="is left as a round begins",
        path="engine/meter.py",
        text="usage = reduce(Usage.plus, (each for usages, _ in measured for each in usages))",
        instead="usage = reduce(Usage.plus, measured[-1][0])",
    ),
    Mutant(
        name="runs charged in each later round",
        shown_by="dies before a write",
        path="engine/meter.py",
        text="for caused_by, fee in self._fees if caused_by == place",
        instead="for caused_by, fee in self._fees if caused_by <= place",
    ),
    Mutant(
        name="a round that ends is the answer",
        shown_by="is left while a tool runs",
        path="engine/rounds/round_relay.py",
        text="                # For the caller, the answer does not end before the last round.\n"
        "                meter.observe_unseen(event)\n",
        instead="                meter.observe(event)\n",
    ),
    Mutant(
        name="runs recorded and not charged",
        shown_by="is left as a round begins",
        path="engine/rounds/tool_runs.py",
        text="meter.charge(fee)",
        instead="meter.round_number",
    ),
    Mutant(
        name="sweeper releases without deciding",
        shown_by="dies before a write",
        path="stores/money/sweeper.py",
        text="record = await self.generations.put_if_absent(lost_record(expired))",
        instead="record = lost_record(expired)",
    ),
)

# Bugs of lines that a provider runs in batches of its own; each is shown by a test.
SUBMISSION_MUTANTS: Final = (
    Mutant(
        name="submitted again by the next worker",
        shown_by="may_die",
        path="engine/batches/submissions.py",
        text="            return await self._recover(submission)\n",
        instead="            self.submission = None\n",
    ),
    Mutant(
        name="given up without looking for it",
        shown_by="acceptance_got_lost",
        path="engine/batches/submissions.py",
        text="            if batches is not None:\n                batch_id = await batches.find(",
        instead="            if batches is None:\n                batch_id = await batches.find(",
    ),
    Mutant(
        name="a batch that is accepted too late goes on",
        shown_by="frozen",
        path="engine/batches/submissions.py",
        text="            await batches.cancel(batch_id)\n        return _POLL_MIN_S",
        instead="            pass\n        return _POLL_MIN_S",
    ),
    Mutant(
        name="only what this try ran is charged",
        shown_by="may_die",
        path="engine/batches/pieces.py",
        text="for it in whole if it.custom_id in ids)",
        instead="for it in outcomes if isinstance(it, LineResult) and it.custom_id in ids)",
    ),
    Mutant(
        name="finished without settling",
        shown_by="half_the_price",
        path="engine/batches/pieces.py",
        text="            await self.submitted.settle(submitted, sum(costs))\n",
        instead="            _ = sum(costs)\n",
    ),
    Mutant(
        name="lines of tries that only waited are lost",
        shown_by="may_die",
        path="engine/batches/answered_lines.py",
        text="            await self._keep(record)\n        else:",
        instead="            pass\n        else:",
    ),
)

# Bugs of the workers of background responses; each is shown by a unit test.
BACKGROUND_MUTANTS: Final = (
    Mutant(
        name="a dead worker's generation is not decided",
        shown_by="without_its_lease",
        path="web/background/running.py",
        text="record = await records.decide(lost)",
        instead="record = lost",
    ),
    Mutant(
        name="billed before the answer is stored",
        shown_by="may_die",
        path="web/background/answering.py",
        text="                await self._store(record)\n            except",
        instead="                pass\n            except",
    ),
    Mutant(
        name="a stream that is cancelled is free",
        shown_by="cancelled_stream",
        path="web/background/running.py",
        text="lambda: self._is_cancelled or self._job.streams",
        instead="lambda: False",
    ),
    Mutant(
        name="an answer that was read begins again",
        shown_by="does_not_begin_again",
        path="web/background/running.py",
        text="if is_lost and await self._parts",
        instead="if not earlier and await self._parts",
    ),
)

# Bugs in runs of background responses at providers; a unit test finds each.
PROVIDER_RUN_MUTANTS: Final = (
    Mutant(
        name="a request that may have been sent is sent again",
        shown_by="killed_worker_submits_once",
        path="web/background/provider_runs.py",
        text="        if run.response_id is None:\n            return _unconfirmed()",
        instead="        if run.response_id is None:\n            await self._store(None)\n"
        "            return None",
    ),
    Mutant(
        name="the sweeper may release the hold of a run",
        shown_by="names_its_hold",
        path="web/background/provider_runs.py",
        text="if provider is None or not await self._store(run):",
        instead="if provider is None:",
    ),
    Mutant(
        name="what a dead worker decided is not settled",
        shown_by="killed_worker_submits_once",
        path="web/background/running.py",
        text="await run.release(record.cost_nano_usd)",
        instead="await run.release()",
    ),
    Mutant(
        name="a frozen worker releases the hold that another bills",
        shown_by="leaves_the_hold_to_the_next",
        path="web/background/provider_runs.py",
        text='if decided.outcome != "lost":',
        instead="if decided is not None:",
    ),
    Mutant(
        name="a response that was given up runs on",
        shown_by="frozen_worker_submits_nothing_twice",
        path="web/background/provider_runs.py",
        text="        if not await self._store(confirmed):",
        instead="        if not await self._store(confirmed) and False:",
    ),
    Mutant(
        name="a policy against retention is ignored",
        shown_by="policy_on_storage",
        path="web/background/provider_runs.py",
        text="any(each.no_retention or",
        instead="any(",
    ),
    Mutant(
        name="a cancelled response ends before its run is billed",
        shown_by="bills_what_ran",
        path="core/background.py",
        text="return self.status in _ENDED and self.run is None",
        instead="return self.status in _ENDED",
    ),
    Mutant(
        name="the provider keeps a copy",
        shown_by="longer_than_a_worker_lives",
        path="web/background/provider_runs.py",
        text="            await provider.delete(run.path, run.response_id)\n        except",
        instead="            pass\n        except",
    ),
)
