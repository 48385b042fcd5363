"""Checks of the arguments of operators' requests; each raises AdministrationError, with what was expected."""

from __future__ import annotations

from broker.operating.answers import AdministrationError

MOST_NUMBER = 2**63 - 1
MOST_NUMBERS = 1000


def refuse_beyond(what: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise AdministrationError(f"expected {least:,} to {most:,} {what}, got {number}")


def refuse_number(number: int | None) -> None:
    if number is not None and not 0 <= number <= MOST_NUMBER:
        raise AdministrationError(f"expected 0 to {MOST_NUMBER} as the number of a message, got {number}")


def refuse_count(count: int | None) -> None:
    if count is not None and not 1 <= count <= MOST_NUMBER:
        raise AdministrationError(f"expected 1 or more as the count of messages, got {count}")


def refuse_numbers(numbers: list[int]) -> None:
    if not 1 <= len(numbers) <= MOST_NUMBERS:
        raise AdministrationError(f"expected 1 to {MOST_NUMBERS:,} numbers of messages, got {len(numbers):,}")
    for number in numbers:
        refuse_number(number)


def refuse_selection(count: int | None, numbers: list[int] | None, up_to: int | None) -> None:
    """Raise AdministrationError unless the messages are selected by numbers, or by count and up_to, or not at all."""
    refuse_count(count)
    refuse_number(up_to)
    if numbers is not None:
        refuse_numbers(numbers)
        if count is not None or up_to is not None:
            raise AdministrationError("expected the numbers of messages, or 'count' and 'up_to': got both")
