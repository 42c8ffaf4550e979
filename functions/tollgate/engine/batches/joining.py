"""Joins the results of all pieces into an output file and an error file."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from msgspec import Struct

from tollgate.core.batches import StepTry
from tollgate.engine.batches.line_run import LineRun
from tollgate.engine.batches.pieces import (
    piece_name,
    read_piece,
    read_stored,
    stop_reason,
    unrun,
)
from tollgate.engine.batches.results import (
    LineResult,
    decode_results,
    encode_line,
    encode_message_line,
)
from tollgate.engine.batches.validation import Piece

# Size at which the lines written so far become a part, which bounds a join's memory.
_PART_BYTES: Final = 8 * 1024 * 1024


class JoinedFiles(Struct, frozen=True, kw_only=True):
    """The files with the results; each is None if it would be empty."""

    output_file_id: str | None
    error_file_id: str | None
    not_run: int


class _FileWriter:
    """Writes one file in parts."""

    def __init__(self, run: LineRun, kind: str, trial: int) -> None:
        self._run = run
        self._kind = kind
        self._trial = trial
        self._lines: list[bytes] = []
        self._size_bytes = 0
        self._parts: list[tuple[str, int]] = []

    async def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._size_bytes += len(line)
        if self._size_bytes >= _PART_BYTES:
            await self._flush()

    async def close(self) -> str | None:
        """Return the id of the file; None if it has no lines."""
        await self._flush()
        if not self._parts:
            return None
        batch = self._run.batch
        return await self._run.objects.create_file(
            batch, f"{batch.id}_{self._kind}.jsonl", self._parts
        )

    async def _flush(self) -> None:
        if self._lines:
            name = f"joined/{self._kind}.{self._trial}.{len(self._parts)}"
            await self._run.objects.put(self._run.batch, name, b"".join(self._lines))
            self._parts.append((name, self._size_bytes))
            self._lines, self._size_bytes = [], 0


async def join_results(run: LineRun, pieces: Sequence[Piece], trial: StepTry) -> JoinedFiles:
    """Write the results of all lines, in the order of the input, into files."""
    output, errors = (
        _FileWriter(run, "output", trial.number),
        _FileWriter(run, "error", trial.number),
    )
    encode = encode_line
    if run.batch.client == "anthropic":
        # Anthropic's results are one file.
        encode, errors = encode_message_line, output
    not_run = written = 0
    async for results in _all_results(run, pieces, trial):
        for result in results:
            await (output if result.is_ok else errors).add(encode(result))
        not_run += sum(result.not_run is not None for result in results)
        written += len(results)
    return JoinedFiles(
        output_file_id=await output.close(),
        error_file_id=None if errors is output else await errors.close(),
        # Lines of a deleted input file have no result.
        not_run=not_run + run.batch.lines - written,
    )


async def _all_results(
    run: LineRun, pieces: Sequence[Piece], trial: StepTry
) -> AsyncIterator[Sequence[LineResult]]:
    batch = run.batch
    for number, piece in enumerate(pieces):
        if number < batch.begun:
            yield decode_results(await read_stored(run, piece_name(number, batch.done[number])))
            continue
        async for lines in read_piece(run, piece):
            yield [unrun(line, trial, piece, stop_reason(batch)) for line in lines]
