"""The interface of all faults: apply the fault, heal the fault, and collect evidence for both."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Injection(ABC):
    """One injected fault. ``evidence`` holds sentences.

    Always: ``did_bite`` becomes True only when something proves that the fault took effect.
    """

    def __init__(self) -> None:
        self.did_bite = False
        self.was_healed = True
        self.evidence: list[str] = []

    async def prepare(self) -> None:
        """Wait until the target is there to break. Called before the time of the fault is taken."""
        return

    @abstractmethod
    async def apply(self) -> None:
        """Inject the fault. Raise CommandFailed if this is not possible."""

    @abstractmethod
    async def heal(self) -> None:
        """Heal the fault, and look for evidence that the fault bit. Call ``stays`` if the target does not come back."""

    def bit(self, sentence: str) -> None:
        self.did_bite = True
        self.evidence.append(sentence)

    def stays(self, sentence: str) -> None:
        """Record that the fault could not be healed."""
        self.was_healed = False
        self.evidence.append(sentence)

    def say(self, sentence: str) -> None:
        self.evidence.append(sentence)
