"""Operators' requests to a broker: each is a message to the control address, answered at its reply-to address.

    {"op": "purge", "address": "orders"}   ->   {"ok": true, "purge": {"messages": 1000}, "more": true}
                                                {"ok": true, "purge": {"messages": 345}, "more": false}
    {"op": "create", "address": "news"}    ->   {"ok": false, "error": "'news' is a topic: ...", "more": false}

Bodies are JSON, as over the control socket of a node. ``reply-to`` is the address of a dynamic source at this broker;
the correlation-id of an answer is the message-id of its request. All changes reported in an answer are on disk. The
operation stops when the operator closes the link with the dynamic source.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from addressing.address import CONTROL_ADDRESS, Address, normalize
from broker.events import LinkRefused
from broker.operating.administration import Administration
from broker.operating.answers import AdministrationError, AnswerPart, Steps
from broker.queueing.commit import Commits
from broker.queueing.held_queue import HeldQueue
from broker.queueing.message_store import MessageStore
from wire.delivery import ACCEPTED, Outcome, rejected
from wire.errors import AmqpError, LinkError
from wire.link import IncomingLink
from wire.log import Emit
from wire.message import MalformedMessage, Message, decode, encode
from wire.request_link import RequestLink
from wire.transport.tls import Role

REQUEST_BYTES = 65536
ANSWER_TTL_S = 60.0
CREDIT = 10
MOST_SHOWN_CHARACTERS = 200
"""Of a value in a request, an error text shows at most so many characters."""
NOT_UNDERSTOOD = "amqp:invalid-field"

ARGUMENTS: dict[str, dict[str, type]] = {
    "list": {},
    "show": {"address": str, "subscriber": str, "messages": int},
    "browse": {
        "address": str,
        "subscriber": str,
        "after": int,
        "limit": int,
        "search": str,
        "bodies": bool,
        "body_bytes": int,
    },
    "create": {"address": str},
    "delete": {"address": str, "subscriber": str, "force": bool},
    "purge": {"address": str, "subscriber": str, "up_to": int},
    "remove": {"address": str, "subscriber": str, "numbers": list},
    "move": {"source": str, "target": str, "subscriber": str, "count": int, "numbers": list, "up_to": int},
    "redrive": {"address": str, "to": str, "count": int, "numbers": list, "up_to": int},
}
"""Arguments of each operation, with their types; an argument that is also in ``NEEDED`` is mandatory."""
NEEDED = ("address", "source", "target")
_IN_WORDS = {str: "a string", int: "a whole number", bool: "true or false", list: "a list of whole numbers"}


@dataclass(slots=True, eq=False)
class Job:
    """An operator's request that a broker carries out step by step, while its answer is not complete yet."""

    op: str
    steps: Steps
    reply_to: HeldQueue
    request_id: Any


class Control:
    """Carries out the requests of operators to a broker, one step of one request at a time, and answers them.

    Always: a job is in ``_ready``, or waits for the writes of its last step to be on disk, or for reads from the disk
    """

    def __init__(
        self, broker: str, administration: Administration, message_store: MessageStore, commits: Commits, log: Emit
    ) -> None:
        self._broker = broker
        self._verbs: dict[str, Callable[..., Steps]] = {
            "list": administration.list_queues,
            **{name: getattr(administration, name) for name in ARGUMENTS if name != "list"},
        }
        self._message_store = message_store
        self._commits = commits
        self._log = log
        self._ready: deque[Job] = deque()
        self._ready_at = 0.0

    # Links

    def is_for(self, link: IncomingLink) -> bool:
        address = link.remote_target.address
        return address is not None and normalize(address) == CONTROL_ADDRESS

    def attach(self, link: IncomingLink) -> None:
        peer = link.endpoint.peer
        # A program on the broker's host may have no other certificate than the broker's own.
        is_own = peer.mesh_role is Role.BROKER and peer.mesh_name == self._broker
        if peer.is_mesh and (is_own or peer.mesh_role in (None, Role.OPERATOR)):
            requests = RequestLink(link, self.on_request, REQUEST_BYTES, CREDIT, IncomingLink.close)
            requests.prepare()
            link.copy_target(link)
            try:
                requests.open()
            except AmqpError as excess:
                link.refuse(excess)
            return
        error = LinkError("amqp:unauthorized-access", f"only operators of the mesh may send to {CONTROL_ADDRESS}")
        remote = link.endpoint.remote
        container_id = remote.container_id if remote is not None else ""
        self._log(LinkRefused(peer.remote_address, None, container_id, link.name, error.condition, error.description))
        link.refuse(error)

    # Requests

    def on_request(self, data: bytes) -> Outcome:
        """Start the request of an operator in the encoded message ``data``; return the outcome of its delivery.

        The outcome is accepted; or rejected, with a reason, for a message that is no valid request, or whose reply-to
        is not the address of a dynamic source at this broker.
        """
        try:
            message = decode(data)
            op, arguments = parse(message.body)
        except (MalformedMessage, AdministrationError) as error:
            return rejected(NOT_UNDERSTOOD, str(error))
        where = None if message.reply_to is None else Address.parse(normalize(message.reply_to))
        reply_to = None if where is None else self._message_store.existing_queue(where)
        if reply_to is None or not reply_to.is_temporary:
            return rejected("amqp:not-found", f"reply-to {message.reply_to!r} is not a dynamic source at this broker")
        self._await_turn(Job(op, self._verbs[op](**arguments), reply_to, message.message_id))
        return ACCEPTED

    # Each call of `on_time` does one step of one request, so that messages of clients are handled between two steps.

    def next_deadline(self) -> float | None:
        return self._ready_at if self._ready else None

    def on_time(self) -> None:
        if self._ready:
            self._step(self._ready.popleft())
            self._ready_at = self._message_store.now

    def _await_turn(self, job: Job) -> None:
        if not self._ready:
            self._ready_at = self._message_store.now
        self._ready.append(job)

    def _step(self, job: Job) -> None:
        if job.reply_to.is_deleted:
            return
        try:
            step = next(job.steps)
        except AdministrationError as error:
            self._commits.promise(partial(self._refuse, job, error))
            return
        if isinstance(step, AnswerPart):
            self._commits.promise(partial(self._answer, job, step))
        elif step is None or step.read(partial(self._await_turn, job)):
            self._await_turn(job)

    def _answer(self, job: Job, part: AnswerPart, now: float) -> None:
        self._say(job, {"ok": True, job.op: part.fields, "more": part.has_more})
        if part.has_more:
            self._await_turn(job)

    def _refuse(self, job: Job, error: AdministrationError, now: float) -> None:
        code = {} if error.code is None else {"code": error.code}
        self._say(job, {"ok": False, "error": str(error), **code, "more": False})

    def _say(self, job: Job, answer: Mapping[str, Any]) -> None:
        if not job.reply_to.is_deleted:
            text = json.dumps(answer, ensure_ascii=False)
            message = Message(text, correlation_id=job.request_id, content_type="application/json")
            self._message_store.put(job.reply_to, encode(message), ANSWER_TTL_S)


def parse(body: Any) -> tuple[str, dict[str, Any]]:
    """Return (op, arguments) of an operator's request, whose body is JSON; arguments that are null are left out.

    Raises AdministrationError for a body that is no JSON object with a known op and valid arguments.
    """
    try:
        request = json.loads(body)
        op = request.pop("op")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise AdministrationError('cannot read the request: expected a string of JSON such as {"op": "list"}') from None
    if not isinstance(op, str) or op not in ARGUMENTS:
        raise AdministrationError(f"unknown op {op!r}: expected one of {', '.join(ARGUMENTS)}")
    arguments = {name: value for name, value in request.items() if value is not None}
    for name, value in arguments.items():
        kind = ARGUMENTS[op].get(name)
        if kind is None:
            raise AdministrationError(
                f"unknown argument {name!r} of {op}: expected {', '.join(ARGUMENTS[op]) or 'no arguments'}"
            )
        if type(value) is not kind or (isinstance(value, list) and not all(type(each) is int for each in value)):
            raise AdministrationError(f"argument {name!r} of {op}: expected {_IN_WORDS[kind]}, got {_shown(value)}")
    for name in (*NEEDED, "numbers") if op == "remove" else NEEDED:
        if name in ARGUMENTS[op] and name not in arguments:
            raise AdministrationError(f"{op} needs the argument {name!r}")
    return op, arguments


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN_CHARACTERS else f"{text[:MOST_SHOWN_CHARACTERS]}..."
