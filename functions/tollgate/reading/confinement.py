"""Confines the process that reads a document, by three independent layers.

- New user, network and IPC namespaces: the process has no network, and can neither trace
  other processes nor read their environment.
- A limit of zero open files: the process can open nothing further.
- A seccomp filter: the process can only use its open files, allocate memory, read clocks and exit;
  every other system call fails.

Each layer works even if the platform does not permit the others.

Numbers of system calls: https://github.com/torvalds/linux/blob/v6.12/arch/x86/entry/syscalls/
syscall_64.tbl and include/uapi/asm-generic/unistd.h (2026-11-27).
"""

import ctypes
import errno
import os
import resource
import struct
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

# Flags of `unshare`: include/uapi/linux/sched.h of v6.12. IPC namespaces isolate shared memory.
_NEW_IPC: Final = 0x08000000
_NEW_USER: Final = 0x10000000
_NEW_NETWORK: Final = 0x40000000
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2
# Instructions of the kernel's filter machine: load a word, jump if equal, return.
_LOAD: Final = 0x20
_JUMP_EQUAL: Final = 0x15
_RETURN: Final = 0x06
_NUMBER_OFFSET: Final = 0
_MACHINE_OFFSET: Final = 4
_KILL: Final = 0x80000000
_FAIL: Final = 0x00050000 | errno.EPERM
_ALLOW: Final = 0x7FFF0000


# Argument with which `tollgate.reading.child` writes its Confinement instead of reading.
CONFINEMENT_ARGUMENT: Final = "--confinement"


class Confinement(Struct, frozen=True, kw_only=True):
    """The layers that the platform permits for the process that reads a document."""

    namespaces: bool
    seccomp: bool


class _Machine(Struct, frozen=True):
    """A processor architecture: its id in the kernel, and its column in the table below."""

    mark: int
    column: int


_MACHINES: Final[Mapping[str, _Machine]] = {
    "x86_64": _Machine(0xC000003E, 0),
    "aarch64": _Machine(0xC00000B7, 1),
}
_ALLOWED: Final[Mapping[str, tuple[int, int]]] = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "lseek": (8, 62),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "futex": (202, 98),
    "membarrier": (324, 283),
    "rseq": (334, 293),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "setitimer": (38, 103),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "times": (100, 153),
    "sysinfo": (99, 179),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getrandom": (318, 278),
    "exit": (60, 93),
    "exit_group": (231, 94),
}


class _Program(ctypes.Structure):
    """The kernel's `sock_fprog`: a filter and the number of its instructions."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def isolate() -> bool:
    """Enter new namespaces permanently; return False if the platform does not permit this.

    The process must have a single thread. The C library is called directly, because Python has
    `os.unshare` only since 3.12.
    """
    if os.uname().sysname != "Linux":
        return False
    status: int = ctypes.CDLL(None).unshare(_NEW_USER | _NEW_NETWORK | _NEW_IPC)
    return status == 0


def open_no_more() -> None:
    """Prevent this process from opening files, sockets and pipes; open ones stay open."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def confine() -> bool:
    """Install the filter permanently; return False if the platform does not support it."""
    machine = _MACHINES.get(os.uname().machine)
    if os.uname().sysname != "Linux" or machine is None:
        return False
    instructions = _instructions(machine)
    program = _Program(len(instructions), b"".join(instructions))
    # The C library that this process has loaded.
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    no, yes = ctypes.c_ulong(0), ctypes.c_ulong(1)
    if prctl(_PR_SET_NO_NEW_PRIVS, yes, no, no, no) != 0:
        return False
    mode = ctypes.c_ulong(_SECCOMP_MODE_FILTER)
    status: int = prctl(_PR_SET_SECCOMP, mode, ctypes.byref(program), no, no)
    return status == 0


def _instructions(machine: _Machine) -> list[bytes]:
    """Return the filter: a jump to its last instruction for each system call that is allowed."""
    numbers = [columns[machine.column] for columns in _ALLOWED.values()]
    return [
        _instruction(_LOAD, _MACHINE_OFFSET),
        _instruction(_JUMP_EQUAL, machine.mark, if_true=1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER_OFFSET),
        *(
            _instruction(_JUMP_EQUAL, number, if_true=len(numbers) - place)
            for place, number in enumerate(numbers)
        ),
        _instruction(_RETURN, _FAIL),
        _instruction(_RETURN, _ALLOW),
    ]


def _instruction(code: int, operand: int, *, if_true: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, 0, operand)
