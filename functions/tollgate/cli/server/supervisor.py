"""Keep several processes serving one port, and end with them."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.resource_tracker import ensure_running
from typing import Final

from msgspec import Struct

from tollgate.cli.server.heartbeat import BEAT_S, STACKS_SIGNAL
from tollgate.core.clock import SystemClock

# Runs in each process: serves the listener until SIGTERM, and beats meanwhile.
ServeAsOne = Callable[[socket.socket, Connection], None]

_LOGGER: Final = logging.getLogger("tollgate.serve")
# A hung process has this time to write its stacks down.
_STACKS_WITHIN_S: Final = 1.0


class Patience(Struct, frozen=True, kw_only=True):
    """The seconds that a process has."""

    ends_s: float
    """From SIGTERM until it is killed."""
    starts_s: float = 60.0
    """Until its app is open: 2 s of imports take long where several share a small CPU quota."""
    silent_s: float = 20.0
    """Without a beat of its event loop."""
    pause_s: float = 10.0
    """After a start that failed."""


class _Worker:
    """A process that serves, as its supervisor sees it."""

    def __init__(
        self, serve: ServeAsOne, listener: socket.socket, on_end: Callable[[int], None]
    ) -> None:
        context = get_context("spawn")
        self._heart, beats = context.Pipe(duplex=False)
        self._process = context.Process(target=serve, args=(listener, beats))
        with _blocked_in_children():
            self._process.start()
        beats.close()
        self.pid = self._process.pid or 0
        self._on_end = on_end
        self._beats = 0
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[bool] = self._loop.create_future()
        self._ended = asyncio.Event()
        self._loop.add_reader(self._heart.fileno(), self._note_beat)
        self._loop.add_reader(self._process.sentinel, self._note_end)

    @property
    def serves(self) -> bool:
        """True if it has begun to serve and has not ended."""
        return self._opened.done() and self._opened.result() and not self._ended.is_set()

    async def starts(self, within_s: float) -> bool:
        """Return whether it serves in time."""
        await asyncio.wait({self._opened}, timeout=within_s)
        return self.serves

    async def until_lost(self, silent_s: float) -> str:
        """Return how it was lost: it has ended, or has been silent for so long.

        Time passes by the ticks of this process, so that a process which was stopped along with it,
        as by a snapshot of the machine, is not taken for silent.
        """
        silent = 0.0
        while silent < silent_s:
            before = self._beats
            if await self._ends(BEAT_S):
                return f"exit status {self._process.exitcode}"
            silent = silent + BEAT_S if self._beats == before else 0.0
        return f"silent for {silent_s:.0f} s"

    async def kill(self) -> None:
        """End it at once; its stacks are written down before, if it can."""
        self.signal(STACKS_SIGNAL)
        await self._ends(_STACKS_WITHIN_S)
        self.signal(signal.SIGKILL)
        await self._ended.wait()

    async def _ends(self, within_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            # Before Python 3.12 wait_for may swallow a cancellation.
            async with asyncio.timeout(within_s):
                await self._ended.wait()
        return self._ended.is_set()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal if it has not ended."""
        # A process that starts collects those that have ended before their end is noted here.
        if not self._ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _note_beat(self) -> None:
        if not os.read(self._heart.fileno(), 4_096):
            self._loop.remove_reader(self._heart.fileno())
            return
        self._beats += 1
        if not self._opened.done():
            self._opened.set_result(True)

    def _note_end(self) -> None:
        self._loop.remove_reader(self._process.sentinel)
        self._loop.remove_reader(self._heart.fileno())
        self._heart.close()
        self._process.join()
        self._ended.set()
        if not self._opened.done():
            self._opened.set_result(False)
        self._on_end(self.pid)


class Supervisor:
    """Keeps so many processes serving; none waits for another.

    All accept from the one listener, so that none has a queue of its own that it could leave
    behind. `on_end` is called with the pid of each that has ended.
    """

    def __init__(
        self,
        serve: ServeAsOne,
        listener: socket.socket,
        patience: Patience,
        on_end: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._serve = serve
        self._listener = listener
        self._patience = patience
        self._on_end = on_end
        self._clock = SystemClock()
        self._reload = asyncio.Event()
        self._has_failed = False
        # `nohup` starts what has to outlive the terminal.
        self._ends_with_terminal = (
            _has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
        )
        # Those that have to serve, and all that have not ended.
        self._workers: list[_Worker] = []
        self._alive: set[_Worker] = set()

    async def run(self, count: int, on_open: Callable[[], None]) -> bool:
        """Serve until SIGTERM or SIGINT; SIGHUP replaces one process after the other.

        A terminal that is closed ends it too. Returns False if it ends since no process could start
        and none served.
        """
        self._supervising = asyncio.create_task(self._supervise(count, on_open))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._supervising.cancel)
        loop.add_signal_handler(signal.SIGHUP, self._note_hangup)
        await asyncio.wait({self._supervising})
        # Else connections would wait in a queue from which nobody accepts any more.
        self._listener.close()
        await asyncio.gather(*map(self._retire, list(self._alive)))
        if not self._supervising.cancelled():
            self._supervising.result()
        return not self._has_failed

    def _note_hangup(self) -> None:
        if self._ends_with_terminal and not _has_terminal():
            self._supervising.cancel()
        else:
            self._reload.set()

    async def _supervise(self, count: int, on_open: Callable[[], None]) -> None:
        started = await asyncio.gather(*(self._start() for _ in range(count)))
        self._workers = [worker for worker in started if worker is not None]
        self._has_failed = len(self._workers) < count
        if self._has_failed:
            return
        on_open()
        async with asyncio.TaskGroup() as tasks:
            for place in range(count):
                tasks.create_task(self._keep(place))
            while await self._reload.wait():
                self._reload.clear()
                await self._replace_all(tasks)

    async def _keep(self, place: int) -> None:
        """Start the process of a place again whenever it is lost, until SIGHUP replaces it."""
        while True:
            lost = self._workers[place]
            how = await lost.until_lost(self._patience.silent_s)
            if self._workers[place] is not lost:
                return
            _LOGGER.error("a process is lost", extra={"fields": {"pid": lost.pid, "how": how}})
            await self._kill(lost)
            while (worker := await self._start()) is None:
                if not any(each.serves for each in self._workers):
                    self._has_failed = self._supervising.cancel()
                    return
                await self._clock.sleep(self._patience.pause_s)
            if self._workers[place] is not lost:
                await self._retire(worker)
                return
            self._workers[place] = worker

    async def _replace_all(self, tasks: asyncio.TaskGroup) -> None:
        """Replace one process after the other, as long as their successors can serve."""
        for place in range(len(self._workers)):
            if (successor := await self._start()) is None:
                _LOGGER.error("the processes that serve are kept")
                return
            before, self._workers[place] = self._workers[place], successor
            tasks.create_task(self._keep(place))
            tasks.create_task(self._retire(before))
        _LOGGER.info("all processes are replaced")

    async def _start(self) -> _Worker | None:
        """Start a process and return it once it serves; None if it does not, or not in time."""
        try:
            worker = _Worker(self._serve, self._listener, self._on_end)
        except OSError as failure:
            # As without a free descriptor, or memory: those that serve are not to end for it.
            _LOGGER.error("no process can be made", extra={"fields": {"how": str(failure)}})
            return None
        self._alive.add(worker)
        if await worker.starts(self._patience.starts_s):
            return worker
        await self._kill(worker)
        _LOGGER.error("a process does not start", extra={"fields": {"pid": worker.pid}})
        return None

    async def _retire(self, worker: _Worker) -> None:
        """Let a process answer what it has accepted, and end."""
        worker.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience.ends_s):
                await worker.until_lost(self._patience.silent_s)
        await self._kill(worker)

    async def _kill(self, worker: _Worker) -> None:
        await worker.kill()
        self._alive.discard(worker)


@contextlib.contextmanager
def _blocked_in_children() -> Iterator[None]:
    """Start processes that take no signal of a terminal: their supervisor does, and ends them."""
    # It has no such mask, and would take this one off.
    ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _has_terminal() -> bool:
    """Return whether this process is one of a terminal that is open."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True
