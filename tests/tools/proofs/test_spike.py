"""Many people at once: each gets inside, and nobody hears of an error of ours."""

import pytest

from tools.proofs.faults.spike import spike


@pytest.mark.slow
@pytest.mark.parametrize(("people", "within"), [(100, 1), (500, 10)])
def test_everybody_of_a_spike_gets_inside(people, within):
    found = spike("sqlite", people, within)
    assert (found["inside"], found["strange"]) == (people, []), found


@pytest.mark.slow
def test_the_comparison_sees_those_who_are_shut_out():
    """Stalled clients straight at the server, without the proxy that the documentation asks for."""
    assert spike("sqlite", 3, 1, n_stalled=50)["inside"] < 3
