"""What a report tells on the terminal, and where the rest of it is."""

import pytest

from mesh.link_logs.findings import Finding
from mesh.link_logs.terminal import MOST_FINDINGS, MOST_ROWS, tell
from mesh.output import Output
from mesh_tests.unit.mesh.link_logs.tables import MOVED, summary


@pytest.mark.parametrize("more", [0, 12])
def test_what_is_left_out_on_the_terminal_is_counted_and_where_it_is_is_told(
    capsys: pytest.CaptureFixture[str], more: int
) -> None:
    made = summary(mesh=[MOVED], addresses=[{**MOVED, "address": f"a{number}"} for number in range(MOST_ROWS + more)])
    tell(made, [Finding(0.5, "x", "y")] * (MOST_FINDINGS + more), Output("report"))
    told = capsys.readouterr().out
    assert ("12 more findings: out/report.html has all of them" in told) == bool(more)
    assert ("12 more rows: out/tables/addresses.csv has all of them" in told) == bool(more)


def test_what_clients_named_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    address = "rpc.\x1b]0;owned\x07\x1b[31mred\r\nmine"
    made = summary(mesh=[MOVED], addresses=[{**MOVED, "address": address}])
    tell(made, [Finding(0.5, f"most of {address}", "y")], Output("report"))
    told = capsys.readouterr().out
    assert "most of rpc. ]0;owned [31mred mine\n" in told
    assert all(line.isprintable() for line in told.splitlines())
