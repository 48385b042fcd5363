"""Advice is there for everything that can fail, and names only what exists."""

import itertools
import re

import pytest

from addressing.kinds import AddressKind, Distribution
from addressing.topology.shapes import PARTS
from mesh.commands.cli import COMMANDS
from mesh.drills.advice import FAULT_KINDS, METRICS, RULES, advice_for

TYPES = tuple(AddressKind)
KEYS = {key for part in PARTS.values() for key in part.model_fields}


def test_every_metric_has_advice_for_every_fault_and_type_of_address() -> None:
    for metric, kind, address_type in itertools.product(METRICS, [None, *FAULT_KINDS], TYPES):
        assert len(advice_for(metric, kind, address_type)) > 40


def test_an_unknown_metric_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown metric 'outtage'.* outage, "):
        advice_for("outtage", "kill", "anycast")


@pytest.mark.parametrize("text", [rule.text for rule in RULES])
def test_advice_names_only_options_and_commands_that_exist(text: str) -> None:
    for typed in re.findall("`([^`]+)`", text):
        if typed.startswith("amqpmesh "):
            assert typed.split()[1] in COMMANDS, typed
            continue
        key, _, value = typed.partition(": ")
        assert key in KEYS, typed
        if key == "type":
            assert value in set(AddressKind), typed
        if key == "distribution":
            assert value in set(Distribution), typed


def test_every_rule_is_the_advice_for_something() -> None:
    given = {
        advice_for(metric, kind, address_type)
        for metric, kind, address_type in itertools.product(METRICS, [None, *FAULT_KINDS], TYPES)
    }
    assert [rule.text for rule in RULES if rule.text not in given] == []


@pytest.mark.parametrize(
    ("metric", "kind", "address_type", "helps"),
    [
        ("outage", "pause", "anycast", "hello_interval_s: 0.1"),
        ("recovery", "blackhole", "queue", "hello_interval_s: 0.1"),
        ("recovery", "blackhole", "queue", "a silent broker is given up after 16 s"),
        ("modified", "kill", "anycast", "retransmit: true"),
        ("lost", "kill", "multicast", "No node stores messages"),
        ("stalls", "kill", "anycast", "link_capacity"),
        ("recovery", "kill", "queue", "`fallback`"),
        ("outage", "flap", "anycast", "`cost`"),
        ("detection", "expire_certificate", "anycast", "amqpmesh certs renew"),
        ("released", None, "anycast", "`fallback`"),
    ],
)
def test_advice_fits_the_fault(metric: str, kind: str | None, address_type: str, helps: str) -> None:
    assert helps in advice_for(metric, kind, address_type)
