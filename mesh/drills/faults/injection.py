"""The interface of all faults: apply a fault, heal the fault, and collect evidence of both."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Injection(ABC):
    """The injection of one fault into a mesh; ``evidence`` holds a sentence for each observed effect.

    Invariant: ``did_bite`` is True only if something proved that the fault took effect.
    """

    def __init__(self) -> None:
        self.did_bite = False
        self.was_healed = True
        self.evidence: list[str] = []

    async def prepare(self) -> None:
        """Wait until the target of the fault runs, before the time of the injection is noted. The base class does not
        wait.
        """
        return

    @abstractmethod
    async def apply(self) -> None:
        """Inject the fault. Raise CommandFailed if the fault cannot be injected."""

    @abstractmethod
    async def heal(self) -> None:
        """Heal the fault, and look for evidence of its effect; call ``stays`` if the target does not come back."""

    def bit(self, sentence: str) -> None:
        self.did_bite = True
        self.evidence.append(sentence)

    def stays(self, sentence: str) -> None:
        """Note, with the evidence ``sentence``, that the fault could not be healed."""
        self.was_healed = False
        self.evidence.append(sentence)

    def say(self, sentence: str) -> None:
        self.evidence.append(sentence)
