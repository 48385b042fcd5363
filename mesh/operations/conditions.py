"""What the error conditions of AMQP mean when a router or broker of a mesh sends them, and what a user can do.

Each error has a sentence of its own beside the condition; these texts are about the condition in general. The names are
those of AMQP 1.0 [2.8.15] to [2.8.18], and our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    meaning: str
    advice: str


_ALL: Final = (
    Condition(
        "amqp:not-found",
        "The topology declares no such address, or a queue, subscription or dynamic address is not there any more.",
        "Compare the address, without scheme and host, with `addresses` of the topology; `amqpmesh check` draws it.",
    ),
    Condition(
        "amqp:unauthorized-access",
        "The user of the connection may not send to, or receive from, this address, or the login failed.",
        "Look at `send` and `receive` of the user in the topology. A mesh with users denies what no pattern allows.",
    ),
    Condition(
        "amqp:not-allowed",
        "The request is against a rule of the mesh, such as a receiver with wildcards that no single entry covers.",
        "The sentence beside the condition names the rule, and mostly an address that works.",
    ),
    Condition(
        "amqp:not-implemented",
        "The mesh, or the broker of this address, does not have the feature that the attach or message asks for.",
        "Known limits in CHANGELOG.md say what there is in place of the feature.",
    ),
    Condition(
        "amqp:invalid-field",
        "A field of a frame or of a message has a value that the mesh cannot use.",
        "The sentence names the field, its value and what was expected.",
    ),
    Condition(
        "amqp:decode-error",
        "Bytes of the peer are not valid AMQP: a type, a length or a performative is wrong.",
        "The client, or something between client and router, is faulty. The sentence has the place in the frame.",
    ),
    Condition(
        "amqp:resource-limit-exceeded",
        "A limit is reached: connections, links or sessions of a connection, queues, filters, or memory.",
        "The sentence names the limit and its key in the topology; raise the key, or use less.",
    ),
    Condition(
        "amqp:resource-locked",
        "A subscription has active consumers, or its name is one of another sort of subscription; or another "
        "connection with this container-id, which asked to be the only one, took the place of this connection.",
        "Wait until the consumers have left, or use a name or container-id of your own.",
    ),
    Condition(
        "amqp:resource-deleted",
        "The queue, subscription or address of the link was deleted while the link was attached.",
        "Attach again if it should be there anew; `amqpmesh broker` shows queues.",
    ),
    Condition(
        "amqp:illegal-state",
        "A frame came where the protocol does not allow it, such as a transfer on a link that is detached.",
        "A fault of the client's library: report it there, with the sentence.",
    ),
    Condition(
        "amqp:frame-size-too-small",
        "An attach, or its answer, is larger than the frames that its reader takes.",
        "Use shorter names, properties or filters. A filter set can be sent in changes.",
    ),
    Condition(
        "amqp:internal-error",
        "A bug in the node, whose log has the details. Only this connection, session or link has ended.",
        "Please report the lines of the node's log.",
    ),
    Condition(
        "amqp:connection:forced",
        "The node closes the connection: it stops, or the connection was silent, stood still, or broke a rule.",
        "Connect again, to this or another router: all addresses are the same at each.",
    ),
    Condition(
        "amqp:connection:framing-error",
        "A frame's header is wrong: its size, its type or its channel.",
        "The peer does not speak AMQP 1.0, or a proxy changes bytes: look at the port and at TLS.",
    ),
    Condition(
        "amqp:link:detach-forced",
        "The node ends the link: the path to the broker is lost and did not come back, or the link stood still.",
        "Attach again. Outcomes that did not come are unknown: send again with the same message-id.",
    ),
    Condition(
        "amqp:link:stolen",
        "Another link of the same container-id and link name took this link's place.",
        "Give each client a container-id of its own; a durable subscriber that comes back steals its own old link.",
    ),
    Condition(
        "amqp:link:transfer-limit-exceeded",
        "The client sent more deliveries than it had credit for.",
        "A fault of the client's library, or of code that does not wait for credit.",
    ),
    Condition(
        "amqp:link:message-size-exceeded",
        "The message is larger than max-message-size of the link, which the answer to the attach has.",
        "Raise `max_message_bytes` of the listener, or send in parts.",
    ),
    Condition(
        "amqp:session:unattached-handle",
        "A frame names a handle to which no link is attached.",
        "A fault of the client's library.",
    ),
    Condition(
        "amqp:session:handle-in-use",
        "An attach names a handle that another link of the session has.",
        "A fault of the client's library.",
    ),
    Condition(
        "amqp:connection-establishment-failed",
        "In the OPEN of an end that closes at once: the connection was refused, for the reason in the CLOSE.",
        "Read the condition of the CLOSE.",
    ),
    Condition(
        "amqpmesh:path-lost",
        "Between routers: the path of a circuit is broken, and the router where the messages enter the mesh tries "
        "another path. Clients do not see this condition.",
        "If a client sees it, please report it.",
    ),
    Condition(
        "amqpmesh:no-taker",
        "Between routers: a dynamic address, as for replies, has no receiver any more; its deliveries are RELEASED.",
        "Clients see the outcome only. Keep the receiver of replies attached until they have come.",
    ),
)
CONDITIONS: Final = {condition.name: condition for condition in _ALL}
