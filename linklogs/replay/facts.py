"""Facts about links as arrays, in which a worker of Spark finds the address, user, connection and peer of a sum.

Spark's driver makes the arrays from the tables of links and runs, which are small: a row for each link, not for each
message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import pyarrow
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from linklogs.replay.codes import Numbers
from linklogs.replay.column_expressions import is_of_mesh, like

CLIENT = "client"
QUEUE = "queue"
PEERS = (CLIENT, QUEUE)
BETWEEN_ROUTERS = ("router", "edge")
"""Roles of connections between routers: messages on these connections have not left the mesh."""
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Words:
    """A list of texts, in which the index of a text is the text's number.

    For addresses and users, the last text is None, and stands for an unknown or missing value.
    """

    words: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.words)

    def column(self, numbers: Numbers) -> pyarrow.Array:
        return pyarrow.array(self.words, pyarrow.string()).take(pyarrow.array(numbers))


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about links, as arrays with an element for each link, sorted by ``key``.

    ``key``: the place of the link's run in ``runs``, times the length of ``links``, plus the place of the link's number
    in ``links``, the sorted and distinct numbers of all links. ``runs``: (node, run), first the ``told`` runs with
    state records, then (node, None) for all runs of each node without state records.

    ``peer``: for a link at the edge of the mesh, the place of client or queue in PEERS; UNKNOWN for all others, and for
    links of the mesh's own addresses. ``is_cut``: the report is cut to the links with ``is_wanted``.
    """

    runs: tuple[tuple[str, int | None], ...]
    told: int
    key: Numbers
    links: Numbers
    is_wanted: Numbers
    connection: Numbers
    peer: Numbers
    address: Numbers
    user: Numbers
    addresses: Words
    users: Words
    is_cut: bool

    @classmethod
    def of(cls, table: pyarrow.Table, runs: Sequence[tuple[str, int]], nodes: Sequence[str], *, is_cut: bool) -> Facts:
        """Make the arrays from ``table``, made by `known`; ``nodes`` are all nodes with files."""
        places = {run: place for place, run in enumerate(runs)}
        whose = zip(table["node"].to_pylist(), table["run"].to_pylist(), strict=True)
        run = numpy.array([places[each] for each in whose], numpy.int64)
        links, number = numpy.unique(table["link"].to_numpy(), return_inverse=True)
        key = run * len(links) + number
        order = numpy.argsort(key)
        ordered = table.take(pyarrow.array(order))
        address, addresses = _words(ordered["address"])
        user, users = _words(ordered["user"])
        wanted = numpy.array(ordered["is_wanted"].to_pylist(), bool)
        rest = _filled(ordered["connection"]), _filled(ordered["peer"])
        all_runs = (*runs, *((node, None) for node in nodes))
        return cls(all_runs, len(runs), key[order], links, wanted, *rest, address, user, addresses, users, is_cut)

    def places(self, run: Numbers, link: Numbers) -> Numbers:
        """Return the index of each link in the arrays of facts, or UNKNOWN for a link without facts.

        ``run``: the place of the link's run in ``runs``; ``link``: the link's number.
        """
        if not len(self.key):
            return numpy.full(len(run), UNKNOWN)
        number = numpy.minimum(numpy.searchsorted(self.links, link), len(self.links) - 1)
        key = run * len(self.links) + number
        place = numpy.minimum(numpy.searchsorted(self.key, key), len(self.key) - 1)
        is_known = (self.key[place] == key) & (self.links[number] == link)
        return numpy.where(is_known, place, UNKNOWN)

    def by_node(self) -> dict[str, dict[int | None, int]]:
        """Return the place of each run in ``runs``, by node and then by the run's number."""
        found: dict[str, dict[int | None, int]] = {}
        for place, (node, run) in enumerate(self.runs):
            found.setdefault(node, {})[run] = place
        return found

    def nodes(self) -> Words:
        return Words(tuple(sorted({node for node, _ in self.runs})))

    def node_of_run(self) -> Numbers:
        """Return, for each of ``runs``, the number of the run's node in the texts that `nodes` returns."""
        number = {node: place for place, node in enumerate(self.nodes().words)}
        return numpy.array([number[node] for node, _ in self.runs], numpy.int64)


def known(links: DataFrame, nodes: DataFrame, address: str | None) -> DataFrame:
    """Return the table from which `Facts` are made; ``is_wanted``: the link's address matches the pattern
    ``address``.
    """
    roles = nodes.groupBy("node").agg(F.max("role").alias("node_role"))
    joined = links.join(F.broadcast(roles), "node", "left")
    is_wanted = F.coalesce(like("address", address), F.lit(False)).alias("is_wanted")
    return joined.select("node", "run", "link", "connection", "address", "user", _peer().alias("peer"), is_wanted)


def _peer() -> Column:
    """Return the peer of a link at the edge of the mesh, client or queue, as a place in PEERS.

    The peer is null within the mesh, for brokers' own links (routers record the same messages), for links of the mesh's
    own addresses, and for unknown links.
    """
    is_router = F.coalesce(F.col("node_role") != "broker", F.lit(True))
    is_route = F.col("role") == "route"
    client, queue = PEERS.index(CLIENT), PEERS.index(QUEUE)
    peer = (
        F.when(F.col("role").isin("producer", "consumer"), client)
        .when(F.col("role") == "broker", queue)
        .when(is_route & (F.col("connection_role") == "broker"), queue)
        .when(is_route & ~F.col("connection_role").isin(*BETWEEN_ROUTERS), client)
    )
    return F.when(is_router & ~is_of_mesh("address"), peer)


def _words(column: pyarrow.ChunkedArray) -> tuple[Numbers, Words]:
    encoded = column.combine_chunks().dictionary_encode()
    words = Words((*encoded.dictionary.to_pylist(), None))
    return encoded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False).astype(numpy.int64), words


def _filled(column: pyarrow.ChunkedArray) -> Numbers:
    filled: Numbers = column.fill_null(UNKNOWN).to_numpy().astype(numpy.int64)
    return filled
