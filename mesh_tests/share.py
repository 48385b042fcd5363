"""A share of many tests that is the same for the same word, and another one for another word."""

from __future__ import annotations

import argparse
import zlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """One test of ``count``, chosen by the test's name and by ``word``."""

    count: int
    word: str

    @classmethod
    def parse(cls, text: str) -> Share:
        """Raise ArgumentTypeError for anything but a count of at least 1, a slash and a word."""
        count, _, word = text.partition("/")
        if not (word and count.isdecimal() and int(count)):
            raise argparse.ArgumentTypeError(f"{text!r}: expected a count and a word, like 5/a1b2c3d")
        return cls(int(count), word)

    def has(self, name: str) -> bool:
        return zlib.crc32(f"{self.word} {name}".encode()) % self.count == 0
