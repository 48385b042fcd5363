"""docs/glossary.md is law: a public class name has one meaning, and the names in the code are the field's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PACKAGES = ("addressing", "wire", "recording", "router", "broker", "linklogs", "mesh")

# Names of two classes each, with the reason. The class of an event has the name that the event has in the log.
ALLOWED = {
    "NodeStarted": "the event node_started of a node's log, and of the supervisor's log",
    "NodeStopped": "the event node_stopped of a node's log, and of the supervisor's log",
    "SignalIgnored": "the event signal_ignored of a node's log, and of the link log writer's, which share no code",
}

# Words of this project's own for which AMQP, link state, queueing or Spark have a word.
INVENTED = {
    "abandoned", "adding", "ahead", "asked", "crowding", "despair", "forsaken", "homing", "hungry", "keeper", "keeping",
    "known", "lacking", "made", "parcel", "pieces", "restless", "restocking", "shelf", "shelves", "spent", "stock",
    "teller", "telling", "thing", "things", "told", "untold",
}  # fmt: skip
# Not Float, which is a type of AMQP, and not the line of a drawing or a log file.
INVENTED_ALONE = {"line", "lines", "moved", "of", "now"}

# Nouns that say nothing without a qualifier, unless the glossary gives the bare noun to one class.
GENERIC = {
    "Addresses", "Claim", "Consumer", "Counts", "Entry", "Event", "Finding", "Flow", "Found", "Frame", "Head", "Kind",
    "Level", "Line", "Log", "Node", "Order", "Outcome", "Owner", "Part", "Party", "Phase", "Place", "Plan", "Producer",
    "Progress", "Queues", "Reader", "Reading", "Record", "Report", "Request", "Result", "Row", "Rows", "Run", "Seen",
    "Side", "Sides", "Site", "Span", "State", "Step", "Steps", "Table", "Target", "Time", "Traffic", "Verdict", "Way",
    "Work",
}  # fmt: skip

CLASS = re.compile(r"^(?:cdef\s+)?class\s+(\w+)", re.MULTILINE)
TERM = re.compile(
    r"^\| \*\*(?P<term>[^|]+)\*\* \|(?P<meaning>[^|]+)\|(?P<code>[^|]*)\|(?P<avoid>[^|]*)\|$", re.MULTILINE
)
IN_CODE = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`")


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted name and file of each module; a stub and its compiled module are one."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in (".py", ".pyx") and path.name != "__init__.py":
                yield ".".join(path.relative_to(ROOT).with_suffix("").parts), path


def classes() -> dict[str, set[str]]:
    """The modules that define each public class."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, path in modules():
        for name in CLASS.findall(path.read_text()):
            if not name.startswith("_"):
                found[name].add(module)
    return found


def words(name: str) -> list[str]:
    """`MessageStore` and `message_store` have the words message and store."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


def is_invented(name: str) -> bool:
    return any(word in INVENTED for word in words(name)) or (len(words(name)) == 1 and words(name)[0] in INVENTED_ALONE)


def terms() -> list[re.Match[str]]:
    return list(TERM.finditer(GLOSSARY.read_text()))


def named_in_glossary() -> set[str]:
    return {name for term in terms() for name in IN_CODE.findall(term["code"])}


def test_compiled_classes_are_seen_too() -> None:
    found = classes()
    assert found["Anycast"] == {"router.forwarding.anycast"}
    assert found["MessageStore"] == {"broker.queueing.message_store"}


def test_a_public_class_name_stands_in_one_module() -> None:
    twice = {name: sorted(where) for name, where in classes().items() if len(where) > 1 and name not in ALLOWED}
    assert not twice


def test_each_exception_is_still_needed() -> None:
    found = classes()
    assert not [name for name in ALLOWED if len(found[name]) < 2]


def test_no_class_and_no_module_has_an_invented_name() -> None:
    assert not {name: where for name, where in classes().items() if is_invented(name)}
    assert not [module for module, _ in modules() if is_invented(module.rpartition(".")[2])]


@pytest.mark.parametrize("name", ["MadeQueues", "BodyKeeper", "things", "clock_ahead", "Of", "Untold"])
def test_an_invented_word_is_found_within_a_name(name: str) -> None:
    assert is_invented(name)


@pytest.mark.parametrize("name", ["UnknownMessage", "Float", "DrawnLine", "message_store", "PiecewiseRate"])
def test_a_word_of_the_field_is_left_alone(name: str) -> None:
    assert not is_invented(name)


def test_a_generic_noun_carries_a_qualifier() -> None:
    given = {name.rpartition(".")[2] for name in named_in_glossary()}
    assert not {name: where for name, where in classes().items() if name in GENERIC - given}


def test_what_the_glossary_names_exists() -> None:
    found = classes()
    there = {module for module, _ in modules()} | {
        f"{module}.{name}" for name, where in found.items() for module in where
    }
    there |= {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert len(named_in_glossary()) > 60
    assert named_in_glossary() <= there


def test_each_row_of_the_glossary_is_read() -> None:
    rows = [
        line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ") and not line.startswith("| term ")
    ]
    assert len(rows) == len(terms())


def test_a_term_has_one_row() -> None:
    names = [name for term in terms() for name in term["term"].split("**, **")]
    assert sorted(set(names)) == sorted(names)
