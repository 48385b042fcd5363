"""Pages of one connection, link, neighbor and node, of events and reports, and the login, in a real browser."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from addressing.pattern import PatternMap
from addressing.topology.credentials import make_secret
from mesh.commands.cli import cli
from mesh_tests.browser.served_console import ServedConsole
from mesh_tests.browser.tabs import HOSTILE, SOON_S, Tab
from mesh_tests.unit.mesh.watch.console_host import NOW_S, TRIANGLE, ConsoleHost
from mesh_tests.unit.mesh.watch.test_kept_reports import drill
from mesh_tests.waiting import wait_until
from recording.columns import RecordEvent, RecordKind

Own = Callable[..., ServedConsole]
Open = Callable[..., Tab]
VIEWERS = f'''{TRIANGLE}
users:
  alice: {{password: "{make_secret("hers", iterations=4096)}", view: ["#"], manage: ["orders.*"]}}
  carol: {{password: "{make_secret("hers", iterations=4096)}"}}
'''
WRITES = [
    ("/connection?id=r1/2", "Close the connection", {"reason": "restart it"}, "connections/r1/2/close",
     {"reason": "restart it"}),
    ("/connection?id=r1/2", "Trace the frames", {"seconds": "5"}, "connections/r1/2/trace", {"seconds": 5}),
    ("/link?id=r1/1", "Close the link", {"reason": "stuck"}, "links/r1/1/close", {"reason": "stuck"}),
    ("/neighbor?id=r1/r2", "Change the cost", {"cost": "40"}, "neighbors/r1/r2/cost", {"cost": 40}),
    ("/node?name=r1", "Change the log level", {"module": "router.routes"}, "nodes/r1/log-level",
     {"module": "router.routes", "level": "info"}),
]  # fmt: skip


@pytest.fixture
def served(own: Own) -> ServedConsole:
    """Serves a mesh in which alice has a connection r1/2 with a producer r1/1 that waits."""
    console = own()
    console.change(fill)
    return console


def fill(host: ConsoleHost) -> None:
    host.connect("r1", 2, "alice", "web")
    host.produce("r1", 1, 2, "rpc.tea")
    host.starve("r1", 1, "no_taker")


@pytest.mark.parametrize(("view", "button", "values", "path", "body"), WRITES, ids=[each[1] for each in WRITES])
def test_a_write_is_shown_first_then_confirmed(
    view: str, button: str, values: dict[str, str], path: str, body: Any, served: ServedConsole, tab: Open
) -> None:
    shown = tab(served, view)
    shown.page.click(f".actions button:has-text('{button}'):enabled")
    shown.wait("document.querySelector('#write').open")
    for name, value in values.items():
        shown.page.fill(f"#write-{name}", value)
    shown.page.keyboard.press("Enter")
    shown.wait("document.querySelector('.would')")
    assert [is_dry for _, _, is_dry, _, _ in served.writes.asked] == [True]
    shown.page.click("button.confirm")
    shown.wait("document.querySelector('.done')")
    asked = [(where, is_dry, {name: each for name, each in sent.items() if name != "expect"})
             for _, where, is_dry, sent, _ in served.writes.asked]  # fmt: skip
    assert asked == [(f"/api/{path}", True, body), (f"/api/{path}", False, body)]
    assert all(sent["expect"] for *_, sent, _ in served.writes.asked)
    assert len(served.mesh.asked) == (2 if "cost" in path else 1)
    shown.page.click("#write a:text-is('Audit entries')")
    wait_until(lambda: len(shown.rows()) == 2, SOON_S, "the entries")
    assert not shown.page.evaluate("document.querySelector('#write').open")
    assert shown.rows(7) == ["done", "counted"]
    assert shown.rows(1) == ["the owner of the mesh"] * 2
    assert shown.wrongs == []


def test_nothing_moves_under_a_click_when_the_audit_entry_comes_late(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, "/neighbor?id=r1/r2")
    held: list[Any] = []
    shown.page.route("**/api/audit?limit=20", lambda route: held.append(route))
    shown.page.click(".actions button:has-text('Change'):enabled")
    shown.page.fill("#write-cost", "7")
    shown.page.keyboard.press("Enter")
    shown.wait("document.querySelector('.would')")
    shown.page.click("button.confirm")
    shown.wait("document.querySelector('.done')")
    wait_until(lambda: shown.page.evaluate("true") and held, SOON_S, "the page to ask for the entry")
    link = shown.page.locator("#write a:text-is('Audit entries')")
    box = link.bounding_box()
    shown.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    shown.page.mouse.down()
    held[0].continue_()
    wait_until(lambda: "of which this is 2: " in shown.text(".audited"), SOON_S, "the entry")
    assert link.bounding_box() == box
    shown.page.mouse.up()
    wait_until(lambda: shown.rows(7) == ["done", "counted"], SOON_S, "the entries")


@pytest.mark.parametrize(
    ("view", "button", "name", "value", "sentence"),
    [
        ("/connection?id=r1/2", "Close", "reason", " ", "Give a reason"),
        ("/connection?id=r1/2", "Trace", "seconds", "0", "expected a whole number from 1 to 600"),
        ("/neighbor?id=r1/r2", "Change", "cost", "1.5", "expected a whole number from 1 to"),
        ("/neighbor?id=r1/r2", "Change", "cost", "", "Nothing is not valid"),
    ],
)
def test_a_value_that_is_wrong_is_not_sent(
    view: str, button: str, name: str, value: str, sentence: str, served: ServedConsole, tab: Open
) -> None:
    shown = tab(served, view)
    shown.page.click(f".actions button:has-text('{button}'):enabled")
    shown.page.fill(f"#write-{name}", value)
    shown.page.keyboard.press("Enter")
    wait_until(lambda: sentence in shown.text("#write .error"), SOON_S, sentence)
    assert served.writes.asked == []


@pytest.mark.parametrize("view", dict.fromkeys(each[0] for each in WRITES))
def test_who_may_not_change_the_mesh_reads_why(view: str, own: Own, tab: Open) -> None:
    console = own(topology=VIEWERS, token="the-token-of-the-owner")
    console.change(fill)
    shown = tab(console, view, user="alice")
    wait_until(lambda: "alice may not change the mesh" in shown.text(".actions .why"), SOON_S, "the reason")
    assert shown.page.locator(".actions button:enabled").count() == 0
    assert shown.text("#me").startswith("alice")


def test_who_is_not_logged_in_is_told_how(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, "/node?name=r1", login=False)
    wait_until(lambda: "run `amqpmesh console`" in shown.text(".actions .why"), SOON_S, "the reason")
    shown.page.click("#me a")
    shown.wait("document.querySelector('#login')")


def test_rights_match_addresses_as_the_observer_does(served: ServedConsole, tab: Open) -> None:
    shown = tab(served)
    patterns = ("#", "a", "a.b", "a.*", "a.#", "*.b", "a/#", "a.#.z", "a.*.z", "*", "a.+", "a.(", "a/*", "#.z", "#/z")
    addresses = (
        "a",
        "a.b",
        "a/b",
        "a.b.z",
        "a.z",
        "a.b.c.z",
        "b",
        "aXb",
        "a.",
        "a.+",
        "a.(",
        "a.b/c",
        "\u00e4.b",
        "z",
        ".z",
        "a/z",
    )
    found = shown.page.evaluate(
        """async ([patterns, addresses]) => {
            const { matches } = await import("/console/page/me.js");
            return patterns.flatMap(pattern => addresses.map(address => matches(pattern, address)));
        }""",
        [patterns, addresses],
    )
    expected = [PatternMap({pattern: True}).find(address) or False for pattern in patterns for address in addresses]
    pairs = list(itertools.product(patterns, addresses))
    wrong = [pair for pair, one, other in zip(pairs, found, expected, strict=True) if one != other]
    assert wrong == []


def test_a_link_says_what_it_waits_for_and_leads_to_its_connection(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, "/links")
    shown.page.click("tbody a[href^='/link?']")
    shown.wait("document.title.startsWith('Link ')")
    wait_until(lambda: "It has no credit: no consumer." in shown.text(".summary"), SOON_S, "the cause")
    shown.page.click("details.fields summary")
    shown.page.click("details.fields a[href^='/connection?']")
    shown.wait("document.title.startsWith('Connection ')")
    wait_until(lambda: len(shown.rows()) > 0, SOON_S, "links of the connection")
    assert shown.page.get_attribute("#pages a[aria-current]", "href") == "/clients"
    assert shown.wrongs == []


def test_a_connection_that_ends_keeps_its_last_state(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, "/connection?id=r1/2")
    wait_until(lambda: "web of alice" in shown.text("h1"), SOON_S, "the connection")
    served.change(lambda host: host.add("r1", RecordKind.CONNECTION, RecordEvent.CLOSED, connection=2))
    wait_until(lambda: "is not open now" in shown.text(".summary"), SOON_S, "the end")
    assert "Below is its last state" in shown.text(".summary")
    assert shown.page.locator(".actions button:enabled").count() == 0
    assert "alice" in shown.text("details.fields")


def test_a_lost_node_says_since_when_and_shows_its_last_events(served: ServedConsole, tab: Open) -> None:
    served.host.log("r2", "node_died", "error", exit_code=-9)

    def lose(host: ConsoleHost) -> None:
        host.runs["r2"].end("lost")

    served.change(lose)
    shown = tab(served, "/node?name=r2")
    wait_until(lambda: shown.text(".summary").startswith("Lost for "), SOON_S, "the state")
    shown.wait("document.querySelector('tr.error')")
    assert "exit_code=-9" in shown.text("tr.error")


def test_events_have_their_meaning_and_lead_to_what_they_name(served: ServedConsole, tab: Open) -> None:
    served.host.log("r1", "attach_refused", user="bob", address="rpc.x")
    served.host.log("r1", "neighbor_down", router="r2", reason="reset")
    shown = tab(served, "/events")
    wait_until(lambda: len(shown.rows()) == 2, SOON_S, "the events")
    assert "The last connection to the neighbor" in shown.text("tbody tr")
    assert shown.page.get_attribute("tbody .pair a", "href") == "/node?name=r2"
    assert shown.page.get_attribute("tbody tr:nth-child(2) a[href^='/address']", "href") == "/address?address=rpc.x"
    shown.page.click("tbody a.name")
    wait_until(lambda: len(shown.rows()) == 1, SOON_S, "one kind of event")
    assert shown.page.input_value("#events-event") == "neighbor_down"
    assert "neighbor_down (warning, of routers)" in shown.text(".summary")
    assert shown.text("#command") == "amqpmesh explain neighbor_down"


def test_new_events_come_on_top_and_rows_stay(served: ServedConsole, tab: Open) -> None:
    served.host.log("r1", "neighbor_down", router="r2")
    served.host.log("r1", "neighbor_down", router="r2")
    shown = tab(served, "/events?node=r1")
    wait_until(lambda: len(shown.rows()) == 2, SOON_S, "the events")
    shown.page.evaluate("window.before = document.querySelector('tbody tr')")
    served.host.log("r1", "neighbor_up", router="r2")
    wait_until(lambda: len(shown.rows()) == 3, SOON_S, "another event")
    assert shown.page.evaluate("window.before === document.querySelectorAll('tbody tr')[1]")


def test_filters_and_older_events_are_in_the_url(served: ServedConsole, tab: Open) -> None:
    for number in range(150):
        served.host.log("r1", "neighbor_down", router=f"r{number}")
    served.host.log("r3", "store_opened", at_s=NOW_S - 9)
    shown = tab(served, "/events")
    wait_until(lambda: len(shown.rows()) == 100, SOON_S, "the newest")
    shown.page.click("button:text-is('Older')")
    wait_until(lambda: len(shown.rows()) == 51, SOON_S, "the older ones")
    assert "after=" in shown.href
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("r3")
    wait_until(lambda: len(shown.rows()) == 1, SOON_S, "the event of r3")
    assert "node=r3" in shown.href
    assert "after=" not in shown.href
    assert "node=r3" in shown.text("#curl")


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_hostile_events_and_audit_entries_do_nothing(place: int, served: ServedConsole, tab: Open) -> None:
    text = HOSTILE[place]
    served.host.log("r1", text, address=text, user=text, **{f"_{text[:40]}": [text]})  # type: ignore[arg-type]
    # Only names that nodes and users have are in an entry: none of them has more characters.
    name = text[:1000]
    entry = {"who": name, "operation": name, "target": name, "what": {name: name}, "arguments": {name: [name]},
             "before": [name], "after": name, "outcome": name, "error": name}  # fmt: skip
    served.run(served.host.audit(**entry))
    for view in ("/events", "/events?show=audit"):
        shown = tab(served, view, viewport={"width": 360, "height": 740})
        wait_until(lambda shown=shown: len(shown.rows()) == 1, SOON_S, "the row")
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert shown.page.evaluate("document.images.length + document.querySelectorAll('body script').length") == 0
        said = shown.page.evaluate("document.getElementById('main').textContent")
        assert not {"\u202e", "\x00"} & set(said)
        assert shown.wrongs == []


def test_a_report_opens_without_the_console_in_reach(own: Own, tab: Open, tmp_path: Path) -> None:
    file = tmp_path / "amqpmesh.yml"
    file.write_text(TRIANGLE)
    kept = drill(tmp_path, "20260101T000000-lose", verdict="FAIL", summary={"results": [{"fault": "a", "lost": 1}]})
    (kept / "report.html").write_text(
        "<p id=said>none</p><script>const say = it => document.getElementById('said').textContent = it;"
        "fetch('/api/nodes').then(() => say('reached'), () => say(`blocked ${self.origin}`))</script>"
    )
    console = own(topology=file)
    shown = tab(console, "/reports")
    assert "1 fault, 1 lost message" in shown.text("tbody tr")
    with shown.page.context.expect_page() as opened:
        shown.page.click("tbody a")
    report = opened.value
    wait_until(lambda: report.text_content("#said").startswith("blocked"), SOON_S, "the request to be blocked")
    assert report.text_content("#said") == "blocked null"
    assert report.evaluate("window.opener === null")


def test_a_user_logs_in_with_name_and_password_and_out_again(own: Own, tab: Open) -> None:
    console = own(topology=VIEWERS, token="the-token-of-the-owner")
    shown = tab(console, None, login=False)
    shown.page.goto(console.url)
    shown.page.fill("#user", "alice")
    shown.page.fill("#password", "guess")
    shown.page.keyboard.press("Enter")
    wait_until(lambda: "The login was refused" in shown.text("#said"), SOON_S, "the refusal")
    assert shown.page.input_value("#password") == ""
    shown.page.fill("#password", "hers")
    shown.page.click("#log-in")
    shown.wait("document.title.startsWith('Map')")
    wait_until(lambda: shown.text("#me .who") == "alice", SOON_S, "the name")
    shown.page.click("#log-out")
    shown.wait("document.querySelector('#login')")
    shown.page.goto(f"{console.url}/nodes")
    shown.wait("document.querySelector('#login')")
    assert not any("guess" in url or "hers" in url for url in shown.requests)
    shown.page.fill("#user", "carol")
    shown.page.fill("#password", "hers")
    shown.page.click("#log-in")
    wait_until(lambda: "carol has no right to see the mesh" in shown.text("#said"), SOON_S, "why carol sees nothing")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_login_page_and_in_the_dialog(scheme: str, served: ServedConsole, tab: Open) -> None:
    shown = tab(served, "/neighbor?id=r1/r2", color_scheme=scheme)
    shown.page.click(".actions button:has-text('Change'):enabled")
    shown.page.fill("#write-cost", "7")
    shown.page.keyboard.press("Enter")
    shown.wait("document.querySelector('.would')")
    assert shown.axe() == []
    shown.page.goto(f"{served.url}/login")
    assert shown.axe() == []


@pytest.mark.parametrize(
    ("view", "command"),
    [
        ("/address?address=rpc.tea", ["explain", "address", "rpc.tea"]),
        ("/connection?id=r1/2", ["explain", "client", "r1/2"]),
        ("/node?name=r1", ["status"]),
        ("/events?event=neighbor_down", ["explain", "neighbor_down"]),
        ("/events?event=$(reboot)", ["status"]),
    ],
)
def test_the_command_of_a_page_about_one_thing_is_one_that_amqpmesh_takes(
    view: str, command: list[str], served: ServedConsole, tab: Open
) -> None:
    shown = tab(served, view)
    program, name, *arguments = shlex.split(shown.text("#command"))
    assert [program, name, *arguments] == ["amqpmesh", *command]
    found = cli.get_command(cli.make_context("amqpmesh", ["help"], resilient_parsing=True), name)
    assert found is not None
    found.make_context(name, arguments)
