"""Budgets of bytes: of a request, of a holder in it, and of the process that all share.

Keeps C47.
"""

from collections.abc import Callable

import pytest

from tollgate.core.buffer_budget import Buffered, ProcessBuffers, take
from tollgate.core.errors import BufferFull, ErrorCode
from tollgate.ingress.errors import error_headers


def refusal(act: Callable[[], None]) -> BufferFull:
    with pytest.raises(BufferFull) as raised:
        act()
    return raised.value


def test_c47_a_request_holds_its_budget_and_not_a_byte_more() -> None:
    process = ProcessBuffers(100, request_bytes_max=10)
    with process.open("acme"):
        take(10)
        failed = refusal(lambda: take(1))
        assert failed.code is ErrorCode.ANSWER_TOO_LARGE
        # Whoever asks again gets the same answer, and pays for it again.
        assert error_headers(failed)["x-should-retry"] == "false"
        assert process.size == 10
    assert process.size == 0


def test_c47_a_holder_has_a_limit_and_returns_what_it_took() -> None:
    process = ProcessBuffers(100, request_bytes_max=10)
    with process.open("acme"):
        buffered = Buffered(6)
        buffered.take(6)
        assert refusal(lambda: buffered.take(1)).code is ErrorCode.ANSWER_TOO_LARGE
        assert process.size == 6
        buffered.release()
        buffered.release()
        take(10)
    buffered.release()
    assert process.size == 0


def test_c47_a_workspace_holds_no_more_than_the_others_leave_free() -> None:
    process = ProcessBuffers(120, request_bytes_max=60)
    with process.open("greedy"):
        take(60)
        failed = refusal(lambda: process.take("greedy", 1))
        assert (failed.code, failed.may_repeat) == (ErrorCode.SERVICE_UNAVAILABLE, True)
        assert error_headers(failed)["retry-after"] == "1"
        with process.open("second"):
            take(30)
            refusal(lambda: take(1))
            with process.open("third"):
                take(15)
                refusal(lambda: take(1))
    assert process.size == 0
    process.take("second", 60)


def test_c47_one_request_may_use_its_budget_whatever_the_process_has() -> None:
    with ProcessBuffers(1, request_bytes_max=10).open("acme"):
        take(10)


def test_outside_of_requests_nothing_is_counted() -> None:
    take(10**12)
    Buffered().take(10**12)
