"""What a scrape has in it, as another project's parser reads the text."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


class Scraped:
    """The samples of a text: value by name and labels."""

    def __init__(self, parts: Iterable[str]) -> None:
        self.text = "".join(parts)
        self.families = list(text_string_to_metric_families(self.text))
        samples = [sample for family in self.families for sample in family.samples]
        self.values = {(each.name, frozenset(each.labels.items())): each.value for each in samples}
        assert len(self.values) == len(samples), "a series stands twice"

    def value(self, name: str, **labels: str) -> float | None:
        return self.values.get((name, frozenset(labels.items())))

    def labels(self, name: str) -> list[dict[str, str]]:
        return [dict(labels) for found, labels in self.values if found == name]
