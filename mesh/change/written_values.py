"""Which values of a resource the file writes, where all others are defaults or follow from values elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mesh.change.resource import ResourceKind

if TYPE_CHECKING:
    from mesh.change.source import TopologySource

_KEYS: Final[dict[tuple[ResourceKind, str], tuple[tuple[str, ...], ...]]] = {
    (ResourceKind.SETTINGS, "subscription_broker"): (("default_broker",),),
    (ResourceKind.SETTINGS, "records"): (),
    (ResourceKind.SETTINGS, "redact_key"): (("redact", "key"),),
    (ResourceKind.SETTINGS, "redact_columns"): (("redact", "columns"),),
    (ResourceKind.BROKER, "is_embedded"): (),
    **{(ResourceKind.BROKER, f"tls_{key}"): (("tls", key),) for key in ("ca", "cert", "key", "verify_hostname")},
    **{(ResourceKind.LISTENER, key): (("tls", key),) for key in ("ca", "cert", "key")},
    (ResourceKind.ADDRESS, "brokers"): (("broker",), ("brokers",)),
    (ResourceKind.ADDRESS, "names_at_brokers"): (("broker_address",),),
    (ResourceKind.ADDRESS, "prefixes"): (),
    (ResourceKind.ADDRESS, "shares_links"): (),
}
"""The keys of the file that write a value whose name is no key, below the place of the resource."""
_ALWAYS: Final = frozenset(
    {
        (ResourceKind.ADDRESS, "type"),
        (ResourceKind.ADDRESS, "declared_by"),
        (ResourceKind.CONNECTION, "dialer"),
        (ResourceKind.SETTINGS, "mesh"),
    }
)
"""Values that a file writes in its short forms, too."""


def written_values(
    source: TopologySource, kind: ResourceKind, values: Iterable[str], path: tuple[str | int, ...]
) -> frozenset[str] | None:
    """Return which of ``values`` the file writes for the resource that it declares at ``path``; None without a file.

    A section of settings in a short form, such as `link_logs: full`, counts as if each of its values was written.
    """
    if source.document is None:
        return None
    spot = source.document.spots.get(path)
    is_short = kind is ResourceKind.SETTINGS and spot is not None and spot.is_scalar

    def is_written(value: str) -> bool:
        if (kind, value) in _ALWAYS:
            return True
        ways = _KEYS.get((kind, value), ((value,),))
        return bool(ways) and (is_short or any(source.is_written(*path, *way) for way in ways))

    return frozenset(value for value in values if is_written(value))
