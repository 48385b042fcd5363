"""Are latencies sorted into the same buckets where they are counted as where they are read?"""

from __future__ import annotations

from recording.columns import bucket_of
from recording.traffic import bucket


def test_the_compiled_buckets_are_those_of_the_schema():
    samples = [*range(5000), *(2**power + near for power in range(13, 32) for near in (-1, 0, 1)), 2**32 - 1]
    assert [bucket(took_us) for took_us in samples] == [bucket_of(took_us) for took_us in samples]
