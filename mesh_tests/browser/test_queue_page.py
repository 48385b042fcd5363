"""The page of a queue in a real browser: messages, bodies, and changes behind a dry run and a confirmation."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from addressing.topology.credentials import make_secret
from mesh.commands.cli import cli
from mesh_tests.browser.faked_mesh import json_body, message, text_body
from mesh_tests.browser.served_console import ServedConsole
from mesh_tests.browser.tabs import HOSTILE, SOON_S, Tab
from mesh_tests.unit.mesh.watch.console_host import TRIANGLE, ConsoleHost
from mesh_tests.waiting import wait_until
from recording.columns import RecordEvent, RecordKind
from wire.message_json import FIELDS, encode_message

QUEUE = "/queue?node=b1&address=orders&subscriber="
QUEUES = f"{TRIANGLE}  late: queue\n  later: queue\n"
READERS = f'''{TRIANGLE}
users:
  alice: {{password: "{make_secret("hers", iterations=4096)}", view: [orders]}}
'''
Own = Callable[..., ServedConsole]
Open = Callable[..., Tab]


@pytest.fixture
def served(own: Own) -> ServedConsole:
    """Serves the queue orders of b1 with the messages 1 to 5."""
    console = own(topology=QUEUES)
    console.change(add_queue)
    console.mesh.queues["orders"] = [message(number) for number in range(1, 6)]
    return console


def add_queue(host: ConsoleHost) -> None:
    host.add("b1", RecordKind.QUEUE, queue=1, address="orders", depth_count=5, oldest_us=3_600_000_000)


def numbers(shown: Tab) -> list[str]:
    found: list[str] = shown.page.evaluate(
        "[...document.querySelectorAll('.tabled tbody tr')].map(row => row.cells[1].textContent)"
    )
    return found


def show_dialog(shown: Tab, button: str) -> None:
    shown.page.click(f".actions button:has-text('{button}')")
    shown.wait("document.querySelector('#write').open")


def confirm(shown: Tab) -> None:
    shown.wait("!document.querySelector('button.confirm').hidden")
    shown.page.click("button.confirm")
    shown.wait("document.querySelector('.done')")


def real(console: ServedConsole) -> list[tuple[str, str, Any]]:
    return [(method, path, body) for method, path, is_dry, body, _ in console.writes.asked if not is_dry]


def test_the_page_says_how_old_the_queue_is_and_that_nobody_takes(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, QUEUE)
    shown.wait("document.querySelector('.summary.alarm')")
    assert shown.text(".summary").startswith("5 messages, the oldest for 60 min.")
    assert "Nobody takes messages" in shown.text(".summary")


def test_messages_are_searched_and_the_search_is_in_the_url(served: ServedConsole, tab: Open) -> None:
    served.mesh.queues["orders"][2]["properties"] = {"region": "north"}
    shown = tab(served, QUEUE)
    wait_until(lambda: numbers(shown) == ["1", "2", "3", "4", "5"], SOON_S, "the messages")
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("north")
    wait_until(lambda: numbers(shown) == ["3"], SOON_S, "the message that matches")
    assert "search=north" in shown.href
    assert "1 shown of 5 searched" in shown.text(".tabled .counts")
    again = tab(served, shown.href.removeprefix(served.url))
    wait_until(lambda: numbers(again) == ["3"], SOON_S, "the same from the URL")


def test_rows_of_messages_change_in_place(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, QUEUE)
    wait_until(lambda: len(numbers(shown)) == 5, SOON_S, "the messages")
    shown.page.evaluate("window.before = document.querySelectorAll('tbody tr')[1]")
    # In one step: the page may ask at any moment.
    _, second, *others = served.mesh.queues["orders"]
    served.mesh.queues["orders"] = [{**second, "is_locked": True}, *others]
    wait_until(lambda: numbers(shown) == ["2", "3", "4", "5"], SOON_S, "the first to go")
    assert shown.page.evaluate("window.before === document.querySelector('tbody tr')")
    assert shown.page.evaluate("window.before.textContent").endswith("at a consumer")


@pytest.mark.parametrize(
    ("body", "viewer", "expected"),
    [
        (text_body("hello\nthere"), "text", "hello\nthere"),
        (json_body('{"id":9007199254740993,"a":[],"b":[1,"x,y"]}'), "json",
         '{\n  "id": 9007199254740993,\n  "a": [],\n  "b": [\n    1,\n    "x,y"\n  ]\n}'),
        ({"kind": "binary", "base64": base64.b64encode(b"\x00\xffAB").decode(), "bytes": 4}, "hex",
         "000000  00 ff 41 42                                      ..AB"),
        (text_body("{oops"), "text", "{oops"),
    ],
)  # fmt: skip
def test_a_body_is_shown_as_what_it_is(
    body: dict[str, Any], viewer: str, expected: str, served: ServedConsole, tab: Open
) -> None:
    served.mesh.queues["orders"][0]["body"] = {"is_cut": False, **body}
    shown = tab(served, f"{QUEUE}&open=1")
    shown.wait("document.querySelector('pre.body')?.textContent")
    assert shown.text("pre.body") == expected
    assert shown.text(".message-body [aria-pressed=true]").lower() == viewer


def test_a_viewer_that_is_chosen_is_in_the_url(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, f"{QUEUE}&open=1")
    shown.wait("document.querySelector('pre.body')?.textContent")
    shown.page.click(".message-body button:text-is('Hex')")
    wait_until(lambda: shown.text("pre.body").startswith("000000  6f 72 64"), SOON_S, "bytes")
    assert "as=hex" in shown.href
    shown.page.click(".message-body button:text-is('JSON')")
    wait_until(lambda: "It is not JSON" in shown.text(".message-body .note"), SOON_S, "why it is not JSON")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"kind": "none", "bytes": 0, "is_cut": False}, "The message has no body."),
        ({"kind": "none", "bytes": 0, "is_cut": False, "why": "the body is damaged"}, "the body is damaged"),
        (None, "The observer sent no body."),
    ],
)
def test_a_body_that_cannot_be_shown_says_why(
    body: dict[str, Any] | None, why: str, served: ServedConsole, tab: Open
) -> None:
    served.mesh.queues["orders"][0]["body"] = body
    shown = tab(served, f"{QUEUE}&open=1")
    wait_until(lambda: shown.text(".message-body .note") == why, SOON_S, why)
    assert shown.page.is_hidden("pre.body")


def test_a_cut_body_says_so_and_is_not_copied(served: ServedConsole, tab: Open) -> None:
    served.mesh.queues["orders"][0]["body"] = {"kind": "text", "text": "[" * 65_536, "bytes": 900_000, "is_cut": True}
    shown = tab(served, f"{QUEUE}&open=1")
    wait_until(lambda: "The first 65.5 kB of 900 kB" in shown.text(".message-body .note"), SOON_S, "the size")
    assert "900,000 bytes" in shown.text(".message .why")
    assert shown.page.is_disabled(".message button:has-text('Send an edited copy')")


def test_a_deep_body_does_not_grow(served: ServedConsole, tab: Open) -> None:
    served.mesh.queues["orders"][0]["body"] = json_body("[" * 5000 + "]" * 5000)
    shown = tab(served, f"{QUEUE}&open=1")
    shown.wait("document.querySelector('pre.body')?.textContent.length > 5000")
    assert shown.page.evaluate("document.querySelector('pre.body').textContent.length") < 10_000 * 85
    assert shown.wrongs == []


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_a_hostile_message_is_shown_and_does_nothing(place: int, served: ServedConsole, tab: Open) -> None:
    text = HOSTILE[place]
    served.mesh.queues["orders"] = [
        message(7, {"kind": "text", "text": text, "bytes": len(text), "is_cut": False}, message_id=text, subject=text,
                reply_to=text, properties={text: text}, annotations={text: [text, {text: 1}]}),
    ]  # fmt: skip
    shown = tab(served, f"{QUEUE}&open=7", viewport={"width": 360, "height": 740})
    shown.wait("document.querySelector('pre.body')?.textContent")
    for viewer in ("text", "hex", "json"):
        shown.page.click(f".message-body button[data-as={viewer}]")
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360
    said = shown.page.evaluate("document.getElementById('main').textContent")
    assert "\u202e" not in said
    assert "\x00" not in said
    assert shown.page.evaluate("document.images.length + document.querySelectorAll('body script').length") == 0
    assert "owned" not in shown.page.title()
    shown.page.click(".message button:has-text('Send an edited copy')")
    shown.wait("document.querySelector('#write').open")
    assert shown.wrongs == []


def test_a_purge_needs_the_typed_count_and_spares_what_came_later(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, QUEUE)
    wait_until(lambda: len(numbers(shown)) == 5, SOON_S, "the messages")
    show_dialog(shown, "Purge what is shown")
    shown.wait("document.querySelector('#confirm-count')")
    assert "Nothing has changed yet. It would do: messages: 5" in shown.text(".would")
    served.mesh.queues["orders"].append(message(6))
    assert shown.page.is_disabled("button.confirm")
    shown.page.fill("#confirm-count", "6")
    assert shown.page.is_disabled("button.confirm")
    shown.page.fill("#confirm-count", "5")
    confirm(shown)
    assert shown.text(".done") == "Done: messages: 5. Before: messages: 6; after: messages: 1."
    expected = {"node": "b1", "address": "orders", "subscriber": None}
    assert real(served) == [("POST", "/api/queues/b1/1/purge", {"up_to": 5, "expect": expected})]
    assert [each["number"] for each in served.mesh.queues["orders"]] == [6]
    shown.page.keyboard.press("Escape")
    wait_until(lambda: numbers(shown) == ["6"], SOON_S, "the message that came later")


def test_selected_messages_move_after_a_dry_run(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, QUEUE)
    wait_until(lambda: len(numbers(shown)) == 5, SOON_S, "the messages")
    shown.page.check("input[aria-label='Select message 2']")
    shown.page.check("input[aria-label='Select message 4']")
    assert "select=2,4" in shown.href
    show_dialog(shown, "Move selected")
    shown.page.fill("#write-target", "late")
    shown.page.click("#write button:text-is('Show what it would do')")
    shown.wait("document.querySelector('.would')")
    assert real(served) == []
    shown.page.fill("#write-target", "later")
    shown.wait("document.querySelector('button.confirm').hidden")
    shown.page.click("#write button:text-is('Show what it would do')")
    confirm(shown)
    assert served.mesh.asked == [("b1", {"op": "move", "source": "orders", "target": "later", "numbers": [2, 4]})]
    assert [each["number"] for each in served.mesh.queues["later"]] == [2, 4]
    keys = [key for *_, key in served.writes.asked]
    assert len(set(keys)) == len(keys) == 3


def test_a_write_without_an_answer_is_sent_again_with_the_same_key_and_done_once(
    served: ServedConsole, tab: Open
) -> None:
    served.writes.breaks = 2
    shown = tab(served, f"{QUEUE}&select=1")
    wait_until(lambda: len(numbers(shown)) == 5, SOON_S, "the messages")
    show_dialog(shown, "Remove")
    shown.wait("document.querySelector('#confirm-count')")
    shown.page.fill("#confirm-count", "1")
    confirm(shown)
    asked = [key for _, _, is_dry, _, key in served.writes.asked if not is_dry]
    assert len(asked) == 3
    assert len(set(asked)) == 1
    assert [request["op"] for _, request in served.mesh.asked] == ["remove"]
    wait_until(lambda: "the owner of the mesh, remove of b1/1, repeated" in shown.text(".audited"), SOON_S, "the entry")


def test_a_refused_write_shows_the_sentence_and_changes_nothing(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, QUEUE)
    wait_until(lambda: len(numbers(shown)) == 5, SOON_S, "the messages")
    show_dialog(shown, "Move what is shown")
    shown.page.click("#write button:text-is('Show what it would do')")
    assert "Name the queue that takes the messages" in shown.text("#write .error")
    shown.page.fill("#write-target", "rpc.x")
    shown.page.click("#write button:text-is('Show what it would do')")
    wait_until(lambda: "the topology has no queue of this address at b1" in shown.text("#write .error"), SOON_S, "why")
    assert shown.page.is_hidden("button.confirm")


def test_a_copy_is_edited_and_goes_to_the_address(served: ServedConsole, tab: Open) -> None:
    served.mesh.queues["orders"][0].update(properties={"region": "north", "count": 3}, annotations={"x-opt-was": "b"})
    shown = tab(served, f"{QUEUE}&open=1")
    shown.wait("document.querySelector('pre.body')?.textContent")
    shown.page.click(".message button:has-text('Send an edited copy')")
    shown.wait("document.querySelector('#write').open")
    assert json.loads(shown.page.input_value("#write-properties")) == {"region": "north", "count": 3}
    shown.page.fill("#write-properties", "[]")
    shown.page.fill("#write-body", "order 1, again")
    shown.page.click("#write button:text-is('Show what it would do')")
    assert "expected a JSON object" in shown.text("#write .error")
    shown.page.fill("#write-properties", '{"region": "south"}')
    shown.page.click("#write button:text-is('Show what it would do')")
    confirm(shown)
    ((_, path, body),) = real(served)
    assert path == "/api/queues/b1/1/send"
    assert body["message"] == {
        "subject": "order", "message_id": "m-1", "priority": 4, "durable": True, "properties": {"region": "south"},
        "body": {"kind": "text", "section": "data", "text": "order 1, again"},
    }  # fmt: skip
    assert [address for address, _ in served.mesh.sent] == ["orders"]


def test_a_reader_sees_why_nothing_can_be_changed_and_no_body_is_asked_for(own: Own, tab: Open) -> None:
    console = own(topology=READERS, token="the-token-of-the-owner")
    console.change(add_queue)
    console.mesh.queues["orders"] = [message(number) for number in range(1, 6)]
    shown = tab(console, f"{QUEUE}&open=1", user="alice")
    wait_until(lambda: len(numbers(shown)) == 5, SOON_S, "the messages")
    shown.wait("document.querySelector('#queue-why:not([hidden])')")
    assert "alice may not change this address" in shown.text("#queue-why")
    assert shown.page.locator(".actions button:enabled").count() == 0
    wait_until(lambda: "alice may not read the messages" in shown.text(".message-body .note"), SOON_S, "the reason")
    assert not any("bodies=true" in url for url in shown.requests)


def test_a_queue_is_found_again_by_name_after_a_restart(served: ServedConsole, tab: Open) -> None:
    shown = tab(served, QUEUE)
    wait_until(lambda: len(numbers(shown)) == 5, SOON_S, "the messages")

    def restart(host: ConsoleHost) -> None:
        host.add("b1", RecordKind.QUEUE, RecordEvent.CLOSED, queue=1)
        host.add("b1", RecordKind.QUEUE, queue=1, address="rpc.other", depth_count=1)
        host.add("b1", RecordKind.QUEUE, queue=9, address="orders", depth_count=2)

    served.mesh.queues["orders"] = [message(21), message(22)]
    served.change(restart)
    wait_until(lambda: numbers(shown) == ["21", "22"], SOON_S, "the messages of the same queue")


def test_the_command_of_the_page_names_the_queue_and_is_one_that_amqpmesh_takes(own: Own, tab: Open) -> None:
    console = own()
    name = "rpc.it's $(x) \u00e4"
    console.change(lambda host: host.add("b1", RecordKind.QUEUE, queue=1, address=name, depth_count=1))
    shown = tab(console, f"/queue?node=b1&address={name}&subscriber=".replace(" ", "+").replace("$", "%24"))
    program, group, *arguments = shlex.split(shown.text("#command"))
    assert program == "amqpmesh"
    context = cli.make_context("amqpmesh", ["help"], resilient_parsing=True)
    command = cli.get_command(context, group)
    assert command is not None
    inner = command.get_command(context, arguments[0])  # type: ignore[attr-defined]
    assert inner.make_context(arguments[0], arguments[1:]).params["address"] == name


def test_a_name_that_nobody_can_read_is_in_no_command(own: Own, tab: Open) -> None:
    console = own()
    console.change(lambda host: host.add("b1", RecordKind.QUEUE, queue=1, address="a\u202eb", depth_count=1))
    shown = tab(console, "/queue?node=b1&address=a%E2%80%AEb&subscriber=")
    assert shown.text("#command").startswith("amqpmesh status")


@pytest.mark.parametrize(
    "fields",
    [
        {"message_id": {"$ulong": 5}, "creation_time": "2026-11-27T23:44:38.123Z", "body": text_body("x")},
        {"correlation_id": {"$uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, "properties": {"at": {"$short": 3}},
         "body": {**json_body('{"a": [1, null]}'), "section": "value"}},
        {"body": {"kind": "binary", "section": "data", "base64": "AP9BQg==", "bytes": 4, "is_cut": False, "why": None}},
        {"body": {"kind": "value", "section": "value", "text": '{"$map": [[{"$symbol": "a"}, 1]]}', "bytes": 9,
                  "is_cut": False, "why": None}},
        {"body": {"kind": "none", "section": None, "bytes": 0, "is_cut": False, "why": None}, "group_id": "g"},
    ],
)  # fmt: skip
def test_a_copy_that_nobody_edits_is_the_same_message(fields: dict[str, Any], served: ServedConsole, tab: Open) -> None:
    original = served.mesh.queues["orders"][0]
    original.update(fields)
    shown = tab(served, f"{QUEUE}&open=1")
    shown.page.click(".message button:has-text('Send an edited copy'):enabled")
    shown.page.click("#write button:text-is('Show what it would do')")
    confirm(shown)
    ((address, sent),) = served.mesh.sent
    copy = {name: value for name, value in original.items() if name in (*FIELDS, "durable", "priority", "properties")}
    assert address == "orders"
    assert sent == encode_message({**copy, "body": original["body"]})


def test_no_copy_is_sent_to_a_subscription(own: Own, tab: Open) -> None:
    console = own()
    console.change(lambda host: host.add("b1", RecordKind.QUEUE, queue=1, address="orders", name="s1", depth_count=1))
    console.mesh.queues["orders"] = [message(1)]
    shown = tab(console, "/queue?node=b1&address=orders&subscriber=s1&open=1")
    wait_until(lambda: "by its topic" in shown.text(".message .why"), SOON_S, "the reason")
    assert shown.page.is_disabled(".message button:has-text('Send an edited copy')")
    assert shown.text("#command") == "amqpmesh broker browse orders --broker=b1 --subscriber=s1"
