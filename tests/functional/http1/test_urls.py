"""URLs of callers, of which nothing stays in memory."""

import tracemalloc

from tollgate.http1.request import parse_url


def test_the_long_urls_of_callers_and_redirects_are_not_kept() -> None:
    tracemalloc.start()
    try:
        for number in range(600):
            parse_url(f"https://a.example/{number}{'x' * 60_000}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000
