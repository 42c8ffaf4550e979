"""The table of `make compare`.

Keeps no contract statement: bench/README.md says what it measures.
"""

from bench.compare.__main__ import format_comparison
from bench.compare.peers import PEERS
from bench.figures import IN_MEMORY, PASSTHROUGH, SCENARIOS, WITH_LEDGER, Sample

NAMES = (PASSTHROUGH, IN_MEMORY, WITH_LEDGER, *PEERS)


def test_a_ratio_is_the_median_of_the_ratios_within_each_round() -> None:
    # The second round is ten times slower for all gateways, as on a busy machine.
    samples = {
        (scenario.name, name): [
            Sample(cpu_s=factor * noise / 1e3, first_token_s=factor * noise / 1e3)
            for noise in (1, 10, 1)
        ]
        for scenario in SCENARIOS
        for factor, name in enumerate(NAMES, start=1)
    }
    heading, rule, *lines = format_comparison(samples).splitlines()
    assert heading.split("|")[2].strip() == PASSTHROUGH
    assert set(rule) == {"|", "-"}
    assert [line.rsplit("(", 1)[1] for line in lines] == ["5.00 ×) |"] * 6
    assert lines[0].split("|")[3].strip() == "2.00 (2.00 ×)"
