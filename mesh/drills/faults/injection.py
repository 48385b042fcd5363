"""What every fault can do: be applied, be healed, and tell what shows that it was."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Injection(ABC):
    """Always: ``did_bite`` is True only once something shows it. ``evidence`` are sentences."""

    def __init__(self) -> None:
        self.did_bite = False
        self.was_healed = True
        self.evidence: list[str] = []

    async def prepare(self) -> None:
        """Before its time is taken: wait until there is something to break."""
        return

    @abstractmethod
    async def apply(self) -> None:
        """Break it. Raises CommandFailed if it cannot be broken."""

    @abstractmethod
    async def heal(self) -> None:
        """Mend it, and look whether it bit. What does not come back ``stays`` broken."""

    def bit(self, sentence: str) -> None:
        self.did_bite = True
        self.evidence.append(sentence)

    def stays(self, sentence: str) -> None:
        """It could not be healed."""
        self.was_healed = False
        self.evidence.append(sentence)

    def say(self, sentence: str) -> None:
        self.evidence.append(sentence)
