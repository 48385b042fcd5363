"""The console of a mesh of processes in a real browser: messages are looked at, moved, copied and purged."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from mesh_tests.browser.tabs import SOON_S, Tab
from mesh_tests.running_mesh import AMQPMESH, RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: shop
watch: "on"
routers: {r1: {}}
brokers: {b1: {routers: [r1]}}
addresses: {orders: queue, late: queue}
"""
QUEUE = "/queue?node=b1&address=orders&subscriber="


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    running = RunningMesh(TOPOLOGY, tmp_path_factory.mktemp("shop"))
    yield running
    running.down()


def numbers(shown: Tab) -> list[str]:
    found: list[str] = shown.page.evaluate(
        "[...document.querySelectorAll('.tabled tbody tr')].map(row => row.cells[1].textContent)"
    )
    return found


def confirm(shown: Tab) -> str:
    """Confirm what the dialog shows, close the dialog, and return the result."""
    shown.wait("!document.querySelector('button.confirm').hidden")
    shown.page.click("button.confirm")
    shown.wait("document.querySelector('.done')")
    said = shown.text(".done")
    shown.page.keyboard.press("Escape")
    return said


def test_messages_are_looked_at_moved_copied_and_purged(browser: Any, mesh: RunningMesh) -> None:
    for number in (1, 2, 3):
        mesh.run("send", "orders", "-m", f'{{"order":{number}}}', "-p", f"customer=c{number}")
    login = mesh.run("console").strip()
    shown = Tab(browser, mesh.observer_url)
    shown.page.goto(login)
    shown.wait("document.title.startsWith('Map')")
    shown.open(QUEUE)
    wait_until(lambda: len(numbers(shown)) == 3, SOON_S, "the messages")
    first, second, third = numbers(shown)

    # Look
    shown.page.click(f"tbody button:text-is('{first}')")
    wait_until(lambda: '"order":' in shown.text("pre.body").replace(" ", "") and shown.text("pre.body"), SOON_S, "body")
    assert "c1" in shown.text("table.properties")
    curl = subprocess.run(shown.text("#curl"), shell=True, capture_output=True, check=True, text=True)
    assert [each["number"] for each in json.loads(curl.stdout)["messages"]] == [int(first), int(second), int(third)]
    _, *command = shlex.split(shown.text("#command"))
    assert command[-2:] == ["-t", str(mesh.topology_file)]
    assert first in mesh.run(*command[:-2])

    # Copy
    shown.page.click(".message button:has-text('Send an edited copy'):enabled")
    shown.page.fill("#write-body", '{"order":1,"again":true}')
    shown.page.click("#write button:text-is('Show what it would do')")
    assert confirm(shown).startswith("Done: messages: 1, router: r1.")
    wait_until(lambda: len(numbers(shown)) == 4, SOON_S, "the copy")

    # Move
    shown.page.check(f"input[aria-label='Select message {second}']")
    shown.page.click(".actions button:has-text('Move selected')")
    shown.page.fill("#write-target", "late")
    shown.page.click("#write button:text-is('Show what it would do')")
    assert confirm(shown).startswith("Done: messages: 1, missing: none")
    assert '{"order":2}' in mesh.run("receive", "late", "-c", "1")

    # Purge, while another message comes
    wait_until(lambda: len(numbers(shown)) == 3, SOON_S, "the rest")
    shown.page.click(".actions button:has-text('Purge what is shown')")
    shown.wait("document.querySelector('#confirm-count')")
    mesh.run("send", "orders", "-m", "later")
    shown.page.fill("#confirm-count", "3")
    assert confirm(shown).startswith("Done: messages: 3")
    assert "later" in mesh.run("receive", "orders", "-c", "1")

    # Audit and events
    shown.open("/events?show=audit&outcome=done")
    wait_until(lambda: shown.rows(2) == ["purge", "move", "send"], SOON_S, "the audit")
    shown.open("/events?event=observer_started")
    wait_until(lambda: len(shown.rows()) == 1, SOON_S, "the event")
    assert shown.wrongs == []
    shown.close()


def test_a_connection_is_closed_with_a_reason(browser: Any, mesh: RunningMesh) -> None:
    client = subprocess.Popen(
        [AMQPMESH, "receive", f"{mesh.url('r1')}/orders"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        login = mesh.run("console").strip()
        shown = Tab(browser, mesh.observer_url)
        shown.page.goto(login)
        shown.wait("document.title.startsWith('Map')")
        shown.open("/clients?by=connection")
        shown.wait("document.querySelector('tbody a[href^=\"/connection?\"]')")
        shown.page.click("tbody a[href^='/connection?']")
        shown.page.click(".actions button:has-text('Close the connection'):enabled")
        shown.page.fill("#write-reason", "it holds messages")
        shown.page.keyboard.press("Enter")
        assert "connections: 1" in confirm(shown)
        assert shown.wrongs == []
        shown.close()
        _, said = client.communicate(timeout=SOON_S)
        assert "it holds messages" in said
    finally:
        client.kill()
        client.wait()
