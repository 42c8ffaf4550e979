"""Validates the file of a batch before any of its lines runs."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final

from msgspec import MsgspecError, Raw, Struct, json

from tollgate.core.batches import BATCH_LINES_MAX, FILE_BYTES_MAX, LineFault
from tollgate.core.clock import Deadline
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import GatewayError, invalid_request
from tollgate.core.ownership import OwnerScope
from tollgate.core.principal import Principal
from tollgate.engine.batches.batch_endpoints import find_batch_endpoint
from tollgate.engine.batches.lines import BatchLine, FaultyLine, RawLine, parse_line, read_lines
from tollgate.engine.ceilings import find_limits
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import planning_request
from tollgate.ingress.base import NO_HEADERS, Ingress, ParsedCall, ParsedWork
from tollgate.ingress.format_rows import IngressFormat
from tollgate.routing.planning.catalog import Catalog

# Imported with the first preset.
_APPLY_PRESET: Final = DottedName[Callable[[Catalog, ParsedCall], ParsedCall]](
    "tollgate.engine.presets:apply_preset"
)
# OpenRouter's suffix for a model in a batch, where the gateway prefers the provider's batch anyway:
# https://openrouter.ai/docs/guides/routing/model-variants/overview (2026-11-28).
_VARIANT: Final = ":batch"
FAULTS_MAX: Final = 100
_PIECE_LINES: Final = 32
# Lines that are submitted to a provider together, whose money is held together.
_SUBMITTED_LINES: Final = 1_000
# A piece with fewer lines for one endpoint is run by the gateway if other lines follow.
_SUBMITTED_MIN: Final = 16
_PIECE_BYTES: Final = 4 * 1024 * 1024
# Lines that the side thread validates at once, about 0.1 s of work.
_GROUP: Final = 100
_ID_BYTES: Final = 16


class Piece(Struct, frozen=True, array_like=True):
    """A range of whole lines in a file, which only one worker runs at a time."""

    start: int
    end: int
    first: int
    """The number of the first line."""
    endpoint: str | None = None
    """The endpoint whose provider gets the lines in a batch of its own; None if the gateway runs
    them.
    """


class CheckedFile(Struct, frozen=True, kw_only=True):
    """The lines of a file, divided into pieces, or its faults."""

    faults: tuple[LineFault, ...]
    lines: int
    bound_nano_usd: int
    pieces: tuple[Piece, ...]

    def index(self) -> bytes:
        """Return the stored form of the pieces."""
        return json.encode(self.pieces)


def read_index(content: bytes) -> tuple[Piece, ...]:
    """Decode the stored form of the pieces; raise MsgspecError if it is corrupt."""
    return json.decode(content, type=tuple[Piece, ...])


class LineParser(Struct, frozen=True, kw_only=True):
    """Parses the bodies of lines as the interactive route does, and makes their calls."""

    gateway: Gateway
    principal: Principal
    format: IngressFormat
    ingress: Ingress

    def parse(self, line: BatchLine) -> ParsedWork:
        """Return the request of a line; raise RequestError with the field at fault."""
        body = _without_variant(self.gateway.planner.catalog, line.body)
        parsed = self.ingress.parse(body, NO_HEADERS)
        if parsed.stream:
            raise invalid_request("stream: a line of a batch is not streamed.", "stream")
        if isinstance(parsed, ParsedCall) and parsed.background:
            raise invalid_request("background: a line of a batch already waits.", "background")
        if isinstance(parsed, ParsedCall) and parsed.request.preset is not None:
            return _APPLY_PRESET()(self.gateway.planner.catalog, parsed)
        return parsed

    def call(
        self, parsed: ParsedWork, request_id: str, *, deadline: Deadline, batch_id: str
    ) -> Call:
        """Return the call for a parsed line; its record has the batch as a label.

        Raises RequestError for a line without a session id where sessions are limited.
        """
        principal = self.principal
        limits = find_limits(NO_HEADERS, principal, parsed.request)
        return Call(
            principal=principal,
            reach=OwnerScope(owner=principal.owner),
            parsed=parsed,
            request_id=request_id,
            ingress_format=self.format.name,
            deadline=deadline,
            labels={"batch": batch_id},
            ceilings=limits.ceilings,
            session=limits.session,
            # Workers may not read stored answers.
            cache_control="no-store",
        )


class FileCheck:
    """The validation of one file."""

    def __init__(
        self,
        parser: LineParser,
        batch_id: str,
        *,
        is_strict: bool = True,
        lines_max: int = BATCH_LINES_MAX,
    ) -> None:
        """Prepare the check; without `is_strict`, an invalid request fails when its line runs."""
        self._is_strict = is_strict
        self._lines_max = lines_max
        self._parser = parser
        self._batch_id = batch_id
        self._seen: dict[bytes, int] = {}
        self._faults: list[LineFault] = []
        self._pieces: list[Piece] = []
        self._lines = 0
        self._in_piece = 0
        self._bound_nano_usd = 0

    async def run(
        self, read: Callable[[int, int], Awaitable[bytes]], size_bytes: int
    ) -> CheckedFile:
        """Validate a file that `read` returns in ranges, and stop after too many faults."""
        gateway, principal = self._parser.gateway, self._parser.principal
        if size_bytes > FILE_BYTES_MAX:
            message = f"the file has {size_bytes:,} bytes, and the limit is {FILE_BYTES_MAX:,}"
            self._faults.append(LineFault(code="file_too_large", message=message))
            return self._result()
        try:
            async for lines in read_lines(read, 0, size_bytes):
                for first in range(0, len(lines), _GROUP):
                    group = lines[first : first + _GROUP]
                    check = partial(self._check_group, group, gateway.clock.now_s())
                    await gateway.side.run(principal.workspace_id, check)
                    if self._lines > self._lines_max:
                        message = f"the file has more than {self._lines_max:,} lines"
                        self._faults.insert(0, LineFault(code="too_many_lines", message=message))
                    if len(self._faults) >= FAULTS_MAX or self._lines > self._lines_max:
                        return self._result()
        except FaultyLine as faulty:
            self._faults.append(faulty.fault)
        if not self._lines and not self._faults:
            self._faults.append(LineFault(code="empty_file", message="the file has no lines"))
        return self._result()

    def _result(self) -> CheckedFile:
        return CheckedFile(
            faults=tuple(self._faults[:FAULTS_MAX]),
            lines=self._lines,
            bound_nano_usd=self._bound_nano_usd,
            pieces=tuple(self._pieces),
        )

    def _check_group(self, group: Sequence[RawLine], now_s: float) -> None:
        for raw in group:
            self._lines += 1
            endpoint: str | None = None
            try:
                endpoint = self._check(raw, now_s)
            except FaultyLine as faulty:
                self._faults.append(faulty.fault)
            self._place(raw, endpoint)

    def _place(self, raw: RawLine, endpoint: str | None) -> None:
        """Add a line to the last piece, or to a new one for other lines."""
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.endpoint != endpoint and self._in_piece < _SUBMITTED_MIN:
            last, endpoint = Piece(last.start, last.end, last.first), None
        lines_max = _PIECE_LINES if endpoint is None else _SUBMITTED_LINES
        if (
            last is None
            or last.endpoint != endpoint
            or self._in_piece >= lines_max
            or raw.end - last.start > _PIECE_BYTES
        ):
            self._pieces.append(Piece(raw.start, raw.end, raw.number, endpoint))
            self._in_piece = 1
            return
        self._pieces[-1] = Piece(last.start, raw.end, last.first, endpoint)
        self._in_piece += 1

    def _check(self, raw: RawLine, now_s: float) -> str | None:
        """Return the endpoint whose provider can get the line in a batch; None if none can."""
        parser = self._parser
        line = parse_line(raw, parser.format.path)
        digest = blake2b(line.custom_id.encode(), digest_size=_ID_BYTES).digest()
        earlier = self._seen.setdefault(digest, raw.number)
        if earlier != raw.number:
            message = f"custom_id is also that of line {earlier}"
            raise FaultyLine(
                LineFault(
                    code="duplicate_custom_id", message=message, line=raw.number, param="custom_id"
                )
            )
        try:
            call = parser.call(
                parser.parse(line),
                parser.gateway.ids.new_id(),
                deadline=Deadline.within(parser.gateway.clock, 0),
                batch_id=self._batch_id,
            )
            plan = parser.gateway.planner.plan(planning_request(call), now_s=now_s)
        except GatewayError as refused:
            if not self._is_strict:
                return None
            param = f"body.{refused.param}" if refused.param else "body"
            fault = LineFault(
                code=refused.code.value, message=refused.message, line=raw.number, param=param
            )
            raise FaultyLine(fault) from refused
        self._bound_nano_usd += plan.cost_max_nano_usd
        return find_batch_endpoint(parser.gateway, call, plan)


class _Model(Struct):
    model: str


def _without_variant(catalog: Catalog, body: bytes) -> bytes:
    """Return a body whose model is named without `:batch`, unless the catalog has the full name."""
    if _VARIANT.encode() not in body:
        return body
    try:
        name = json.decode(body, type=_Model).model
        if not name.endswith(_VARIANT) or catalog.states(name):
            return body
        fields = json.decode(body, type=dict[str, Raw])
    except (MsgspecError, RecursionError, UnicodeDecodeError):
        # The parser of the format names the fault.
        return body
    return json.encode({**fields, "model": name.removesuffix(_VARIANT)})
