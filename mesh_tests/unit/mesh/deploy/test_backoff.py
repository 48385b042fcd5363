"""How long does the supervisor wait before it starts a dead node again?"""

from __future__ import annotations

import signal

import pytest

from mesh.deploy.backoff import Backoff, Death

IN_USE = "r1 ended with exit code 1: cannot listen on 127.0.0.1:5672: address already in use"


def delays(*deaths: Death) -> list[float]:
    backoff = Backoff(first_s=1, longest_up_s=3, longest_s=5, stable_s=30)
    return [backoff.on_exit(death) for death in deaths]


def test_a_node_that_cannot_start_waits_twice_as_long_each_time_up_to_the_bound() -> None:
    assert delays(*[Death(1, IN_USE, 0.4, was_up=False)] * 5) == [1, 2, 4, 5, 5]


def test_a_node_that_was_up_waits_less_for_a_crash_of_the_same_cause() -> None:
    crash = Death(-signal.SIGSEGV, "r1 was ended by SIGSEGV: Segmentation fault", 3.0, was_up=True)
    assert delays(*[crash] * 4) == [1, 2, 3, 3]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_node_that_somebody_kills_again_and_again_is_back_as_soon_as_the_first_time(number: signal.Signals) -> None:
    killed = Death(-number, f"r1 was ended by {number.name}", 1.5, was_up=True)
    assert delays(*[killed] * 9) == [1] * 9


def test_a_node_that_is_killed_before_it_could_start_is_in_a_loop() -> None:
    """The kernel kills a process that needs more memory than there is, for instance."""
    killed = Death(-signal.SIGKILL, "r1 was ended by SIGKILL", 0.2, was_up=False)
    assert delays(*[killed] * 3) == [1, 2, 4]


def test_another_cause_and_a_long_life_begin_again() -> None:
    crash = Death(-signal.SIGSEGV, "r1 was ended by SIGSEGV", 3.0, was_up=True)
    bug = Death(1, "r1 ended with exit code 1: KeyError: 'x'", 3.0, was_up=True)
    late = Death(1, bug.cause, 31.0, was_up=True)
    assert delays(crash, crash, bug, bug, late, bug) == [1, 2, 1, 2, 1, 2]


def test_a_cause_is_the_same_whatever_numbers_it_has() -> None:
    first, second = (
        Death(1, f"r1: no route to 10.0.0.7:{port} (pid {port}, 0x7f{port}a)", 0.1, False) for port in (1, 42)
    )
    assert delays(first, second) == [1, 2]
