"""What a client says on one connection, frame by frame: a seeded dialogue, well-formed or hostile in fields or order.

A dialogue is bytes only and waits for no answer: it picks its own channels, handles and delivery-ids, and a pause
between two frames gives the peer time to answer. The same seed makes the same dialogue. [2.4] to [2.8], [3.5], [4.5]
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from random import Random

from mesh_tests.fuzz import encodings as amqp
from mesh_tests.fuzz.encodings import FALSE, NULL, TRUE, Maker, hostile_value
from mesh_tests.fuzz.neighbors import CLIENT, Voice

AMQP_HEADER, SASL_HEADER = b"AMQP\x00\x01\x00\x00", b"AMQP\x03\x01\x00\x00"
ADDRESSES = ("work.fuzz", "prices.fuzz", "orders.fuzz", "news.fuzz", "shards.fuzz", "unknown", "closed")
LINK_CREDIT = 50

Performative = tuple[int, tuple[tuple[str, Maker], ...]]


def _maybe(random: Random, make: Maker) -> bytes:
    return make(random) if random.random() < 0.5 else NULL


def _optional(make: Maker) -> Maker:
    return lambda random: _maybe(random, make)


def _flag(random: Random) -> bytes:
    return random.choice((TRUE, FALSE, NULL))


def _name(random: Random) -> bytes:
    return amqp.string(f"l{random.randrange(1_000_000)}" if random.random() < 0.9 else "durable")


def _small(random: Random) -> bytes:
    return amqp.uint(random.choice((0, 0, 1, 2)))


def _symbols(random: Random) -> bytes:
    return random.choice((NULL, amqp.symbol("queue"), amqp.symbols("topic", "shared"), amqp.symbols("a", is_wide=True)))


def _fields(random: Random) -> bytes:
    made = [(amqp.nested if random.random() < 0.1 else amqp.any_value)(random) for _ in range(random.randrange(3))]
    pairs = [(amqp.symbol(f"p{number}"), value) for number, value in enumerate(made)]
    return amqp.map_of(*(part for pair in pairs for part in pair))


def _address(random: Random) -> bytes:
    return amqp.string(random.choice(ADDRESSES)) if random.random() < 0.9 else NULL


def _outcome(random: Random) -> bytes:
    match random.randrange(6):
        case 0:
            return amqp.described(0x25, amqp.list_of(_error(random)))
        case 1:
            return amqp.described(0x27, amqp.list_of(_flag(random), _flag(random), _fields(random)))
        case 2:
            return amqp.described(0x23, amqp.list_of(amqp.uint(0), amqp.ulong(random.randrange(100))))
        case 3:
            return amqp.described(0x34, amqp.list_of(amqp.binary(b"txn"), amqp.described(0x24, amqp.list_of())))
        case _:
            return amqp.described(random.choice((0x24, 0x26)), amqp.list_of())


def _error(random: Random) -> bytes:
    text = amqp.string("e" * random.choice((0, 10, 300)))
    return amqp.described(0x1D, amqp.list_of(amqp.symbol("amqp:not-allowed"), text, _optional(_fields)(random)))


def _filter(random: Random) -> bytes:
    if random.random() < 0.2:
        return amqp.map_of(amqp.symbol("f"), b"\x00" + amqp.symbol("example:deep") + amqp.nested(random))
    value = b"\x00" + amqp.symbol("apache.org:selector-filter:string") + amqp.string("a = 1")
    return amqp.map_of(amqp.symbol("f"), value)


SOURCE: tuple[tuple[str, Maker], ...] = (
    ("address", _address),
    ("durable", lambda random: amqp.uint(random.choice((0, 0, 1, 2)))),
    ("expiry-policy", lambda random: amqp.symbol(random.choice(("never", "link-detach", "session-end")))),
    ("timeout", _optional(_small)),
    ("dynamic", lambda random: random.choice((NULL, NULL, FALSE, TRUE))),
    ("dynamic-node-properties", _optional(_fields)),
    ("distribution-mode", lambda random: random.choice((NULL, amqp.symbol("copy"), amqp.symbol("move")))),
    ("filter", _optional(_filter)),
    ("default-outcome", _optional(_outcome)),
    ("outcomes", _symbols),
    ("capabilities", _symbols),
)
TARGET = (*SOURCE[:6], ("capabilities", _symbols))

PERFORMATIVES: dict[str, Performative] = {
    "open": (
        0x10,
        (
            ("container-id", lambda random: amqp.string(random.choice(("fuzz", "fuzz", "r9", "durable")))),
            ("hostname", _optional(_name)),
            ("max-frame-size", lambda random: random.choice((NULL, amqp.uint(512), amqp.uint(70_000)))),
            ("channel-max", lambda random: random.choice((NULL, amqp.ushort(0), amqp.ushort(10)))),
            ("idle-time-out", lambda random: random.choice((NULL, NULL, amqp.uint(60_000), amqp.uint(1)))),
            ("outgoing-locales", _symbols),
            ("incoming-locales", _symbols),
            ("offered-capabilities", _symbols),
            ("desired-capabilities", _symbols),
            ("properties", _optional(_fields)),
        ),
    ),
    "begin": (
        0x11,
        (
            ("remote-channel", lambda random: NULL),
            ("next-outgoing-id", _small),
            ("incoming-window", lambda random: amqp.uint(random.choice((0, 1, 100, 0xFFFFFFFF)))),
            ("outgoing-window", lambda random: amqp.uint(random.choice((0, 1, 100, 0xFFFFFFFF)))),
            ("handle-max", lambda random: random.choice((NULL, amqp.uint(0), amqp.uint(10)))),
            ("offered-capabilities", _symbols),
            ("desired-capabilities", _symbols),
            ("properties", _optional(_fields)),
        ),
    ),
    "attach": (
        0x12,
        (
            ("name", _name),
            ("handle", _small),
            ("role", lambda random: random.choice((TRUE, FALSE))),
            ("snd-settle-mode", lambda random: random.choice((NULL, amqp.ubyte(random.randrange(3))))),
            ("rcv-settle-mode", lambda random: random.choice((NULL, amqp.ubyte(random.randrange(2))))),
            ("source", lambda random: _terminus(random, 0x28, SOURCE)),
            ("target", lambda random: _terminus(random, random.choice((0x29,) * 9 + (0x30,)), TARGET)),
            ("unsettled", lambda random: NULL if random.random() < 0.9 else _fields(random)),
            ("incomplete-unsettled", _flag),
            ("initial-delivery-count", lambda random: amqp.uint(random.choice((0, 0, 0xFFFFFFF0)))),
            ("max-message-size", lambda random: random.choice((NULL, amqp.ulong(0), amqp.ulong(1000)))),
            ("offered-capabilities", _symbols),
            ("desired-capabilities", _symbols),
            ("properties", _optional(_fields)),
        ),
    ),
    "flow": (
        0x13,
        (
            ("next-incoming-id", _small),
            ("incoming-window", lambda random: amqp.uint(random.choice((0, 1, 100, 0x7FFFFFFF)))),
            ("next-outgoing-id", _small),
            ("outgoing-window", lambda random: amqp.uint(random.choice((0, 100)))),
            ("handle", lambda random: random.choice((NULL, _small(random)))),
            ("delivery-count", _small),
            ("link-credit", lambda random: amqp.uint(random.choice((0, 1, LINK_CREDIT, 0xFFFFFFFF)))),
            ("available", _optional(_small)),
            ("drain", _flag),
            ("echo", _flag),
            ("properties", _optional(_fields)),
        ),
    ),
    "transfer": (
        0x14,
        (
            ("handle", _small),
            ("delivery-id", _optional(_small)),
            ("delivery-tag", lambda random: amqp.binary(random.randbytes(random.choice((0, 1, 8, 32, 33))))),
            ("message-format", lambda random: random.choice((NULL, amqp.uint(0), amqp.uint(0), amqp.uint(7)))),
            ("settled", _flag),
            ("more", lambda random: random.choice((NULL, FALSE, FALSE, TRUE))),
            ("rcv-settle-mode", lambda random: random.choice((NULL, amqp.ubyte(1)))),
            ("state", lambda random: NULL if random.random() < 0.8 else _outcome(random)),
            ("resume", lambda random: random.choice((NULL, NULL, NULL, TRUE))),
            ("aborted", lambda random: random.choice((NULL, NULL, FALSE, TRUE))),
            ("batchable", _flag),
        ),
    ),
    "disposition": (
        0x15,
        (
            ("role", lambda random: random.choice((TRUE, TRUE, FALSE))),
            ("first", _small),
            ("last", lambda random: random.choice((NULL, amqp.uint(0), amqp.uint(3), amqp.uint(0xFFFFFFFF)))),
            ("settled", _flag),
            ("state", _optional(_outcome)),
            ("batchable", _flag),
        ),
    ),
    "detach": (0x16, (("handle", _small), ("closed", _flag), ("error", _optional(_error)))),
    "end": (0x17, (("error", _optional(_error)),)),
    "close": (0x18, (("error", _optional(_error)),)),
}
SASL: dict[str, Performative] = {
    "sasl-init": (
        0x41,
        (
            ("mechanism", lambda random: amqp.symbol(random.choice(("ANONYMOUS", "PLAIN", "SCRAM-SHA-256", "X")))),
            ("initial-response", lambda random: amqp.binary(random.choice((b"", b"\0a\0b", b"n,,n=a,r=b", b"\xff")))),
            ("hostname", _optional(_name)),
        ),
    ),
    "sasl-response": (0x43, (("response", lambda random: amqp.binary(random.randbytes(8))),)),
    "sasl-mechanisms": (0x40, (("sasl-server-mechanisms", _symbols),)),
    "sasl-outcome": (0x44, (("code", lambda random: amqp.ubyte(0)), ("additional-data", lambda random: NULL))),
}
USUAL = ("begin", "attach", "attach", "flow", "transfer", "disposition", "flow", "transfer", "detach")


@dataclass(frozen=True)
class Dialogue:
    """``chunks``: what to write, in order; ``pauses``: after which of them the peer gets time to answer."""

    seed: int
    chunks: tuple[bytes, ...]
    pauses: frozenset[int]
    ending: str = "reset"
    words: tuple[str, ...] = field(default=(), compare=False)
    """One for each chunk: its performative, and what is wrong with it."""


ENDINGS = ("reset", "close", "end, then reset", "half-close")


def dialogue(seed: int, *, is_hostile: bool = True, voice: Voice = CLIENT) -> Dialogue:
    random = Random(f"{seed}/{is_hostile}")
    if is_hostile and random.random() < 0.08:
        return _sasl_dialogue(seed, random)
    names = ["open", *USUAL]
    for _ in range(random.randrange(6)):
        names.insert(random.randrange(2, len(names) + 1), random.choice(("attach", "flow", "transfer", "disposition")))
    hostile: set[int] = set()
    if is_hostile:
        _disorder(random, names)
        hostile = {random.randrange(len(names)) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))}
    speaker = _Speaker(random, voice, is_strict=not is_hostile)
    frames = [speaker.frame(name, is_hostile=number in hostile) for number, name in enumerate(names)]
    if voice.opening is not None:
        frames[0] = ("open of a node", _framed(voice.opening(random)))
    if is_hostile and random.random() < 0.15:
        number = random.randrange(len(frames))
        frames[number] = _broken(random, *frames[number])
    chunks = (AMQP_HEADER, *(frame for _, frame in frames))
    pauses = frozenset(number for number in range(len(chunks)) if random.random() < 0.35)
    return Dialogue(seed, chunks, pauses, random.choice(ENDINGS), ("header", *(words for words, _ in frames)))


class _Speaker:
    """Counts handles and delivery-ids as an ordinary client would, so that a dialogue gets past its first frames."""

    def __init__(self, random: Random, voice: Voice, *, is_strict: bool) -> None:
        self._random = random
        self._voice = voice
        self._is_strict = is_strict
        self._roles: list[bytes] = []
        self._delivery_id = 0
        self._is_open: int | None = None
        """The handle of the delivery of which more is to come."""

    def frame(self, name: str, *, is_hostile: bool) -> tuple[str, bytes]:
        random = self._random
        code, fields = PERFORMATIVES[name]
        given = self._given(name) if self._is_strict or random.random() < 0.95 else {}
        channel = 0 if self._is_strict or random.random() < 0.99 else random.choice((1, 9, 300, 65_535))
        body, words = _performative(random, code, fields, given, is_hostile)
        return f"{name}{words}", _framed(body + (self._payload() if name == "transfer" else b""), channel)

    def _payload(self) -> bytes:
        return (self._voice.payload or _payload)(self._random)

    def _given(self, name: str) -> dict[str, bytes]:
        random = self._random
        match name:
            case "attach":
                given = {"role": random.choice((TRUE, FALSE)), "unsettled": NULL, **self._voice.attach(random)}
                self._roles.append(given["role"])
                return {"handle": amqp.uint(len(self._roles) - 1), **given}
            case "flow":
                return {"handle": self._handle(TRUE), "echo": NULL}
            case "transfer":
                return self._transfer()
            case "detach":
                return {"handle": self._handle(None)}
            case "disposition":
                return {"role": TRUE, "first": amqp.uint(0), "last": NULL}
            case _:
                return {}

    def _handle(self, role: bytes | None) -> bytes:
        found = [number for number, each in enumerate(self._roles) if role in (None, each)]
        return amqp.uint(self._random.choice(found)) if found else NULL

    def _transfer(self) -> dict[str, bytes]:
        is_first = self._is_open is None
        handle = self._handle(FALSE) if is_first else amqp.uint(self._is_open or 0)
        more = self._random.random() < 0.2
        given = {
            "handle": amqp.uint(0) if handle == NULL else handle,
            "delivery-id": amqp.uint(self._delivery_id) if is_first else NULL,
            "delivery-tag": amqp.binary(b"%d" % self._delivery_id) if is_first else NULL,
            "message-format": NULL,
            "more": TRUE if more else FALSE,
            "resume": NULL,
        }
        self._is_open = struct.unpack(">I", given["handle"][1:])[0] if more else None
        self._delivery_id += is_first
        return given


def _disorder(random: Random, names: list[str]) -> None:
    match random.randrange(5):
        case 0:
            random.shuffle(names)
        case 1:
            names.insert(random.randrange(len(names)), random.choice(list(PERFORMATIVES)))
        case 2:
            names.pop(random.randrange(len(names)))
        case _:
            pass


def _performative(
    random: Random, code: int, fields: tuple[tuple[str, Maker], ...], given: dict[str, bytes], is_hostile: bool
) -> tuple[bytes, str]:
    """The encoded performative, and words for what is wrong with it."""
    items = [given[name] if name in given else make(random) for name, make in fields]
    if not is_hostile:
        return amqp.described(code, amqp.list_of(*items)), ""
    match random.randrange(16):
        case 0:
            items = items[: random.randrange(len(items))]
            return amqp.described(code, amqp.list_of(*items)), f" with {len(items)} fields"
        case 1:
            return amqp.described(code, amqp.list_of(*items, TRUE, NULL, *items)), " with surplus fields"
        case 2:
            return amqp.described(code, hostile_value(random)), " with a hostile list"
        case 3:
            return amqp.described(
                code, amqp.compound(0xD0, items, surplus=random.choice((-1, 1, 50)))
            ), " of false size"
        case 4:
            return amqp.described(code, amqp.compound(0xD0, items, count=random.choice((0, 3, 40)))), " of false count"
        case 5:
            descriptor = random.choice((amqp.symbol("amqp:open:list"), amqp.ulong(code), hostile_value(random)))
            return b"\x00" + descriptor + amqp.list_of(*items), " with a hostile descriptor"
        case 6 | 7 | 8 | 9 if code == 0x12:
            side, terminus, table = random.choice((("source", 0x28, SOURCE), ("target", 0x29, TARGET)))
            parts = [make(random) for _, make in table]
            number = random.randrange(len(parts))
            parts[number] = hostile_value(random)
            items[5 if side == "source" else 6] = amqp.described(terminus, amqp.list_of(*parts))
            return amqp.described(code, amqp.list_of(*items)), f" with a hostile {table[number][0]} of its {side}"
        case _:
            number = random.randrange(len(items))
            items[number] = hostile_value(random)
            return amqp.described(code, amqp.list_of(*items)), f" with a hostile {fields[number][0]}"


def _terminus(random: Random, code: int, fields: tuple[tuple[str, Maker], ...]) -> bytes:
    if random.random() < 0.03:
        return NULL
    items = [make(random) for _, make in fields]
    return amqp.described(code, amqp.list_of(*items))


def _payload(random: Random) -> bytes:
    body = amqp.described(0x75, amqp.binary(bytes(random.choice((0, 10, 1000, 20_000)))))
    match random.randrange(8):
        case 0:
            return amqp.described(0x70, hostile_value(random)) + body
        case 1:
            return amqp.described(0x73, amqp.list_of(NULL, NULL, hostile_value(random))) + body
        case 2:
            return amqp.described(0x72, hostile_value(random)) + body
        case 3:
            return hostile_value(random)
        case 4:
            return amqp.described(0x70, amqp.list_of(TRUE, amqp.ubyte(9), amqp.uint(1), NULL, amqp.uint(3))) + body
        case 5:
            return amqp.described(0x73, amqp.list_of(NULL, NULL, amqp.string(random.choice(ADDRESSES)))) + body
        case _:
            return body


def _framed(body: bytes, channel: int = 0, kind: int = 0) -> bytes:
    return struct.pack(">IBBH", 8 + len(body), 2, kind, channel) + body


def _broken(random: Random, words: str, frame: bytes) -> tuple[str, bytes]:
    match random.randrange(5):
        case 0:
            return f"{words}, cut short", frame[: random.randrange(1, len(frame))]
        case 1:
            size = random.choice((0, 7, 8, len(frame) - 1, len(frame) + 1, 1 << 20, 0xFFFFFFFF))
            return f"{words}, of size {size}", struct.pack(">I", size) + frame[4:]
        case 2:
            return f"{words}, of a false data offset", frame[:4] + bytes([random.choice((0, 1, 3, 255))]) + frame[5:]
        case 3:
            return f"{words}, of a false type", frame[:5] + bytes([random.choice((1, 2, 255))]) + frame[6:]
        case _:
            where = random.randrange(8, len(frame))
            return f"{words}, one byte changed", frame[:where] + random.randbytes(1) + frame[where + 1 :]


def _sasl_dialogue(seed: int, random: Random) -> Dialogue:
    chunks, words = [SASL_HEADER], ["SASL header"]
    for name in random.choices(list(SASL), k=random.randrange(1, 4)):
        code, fields = SASL[name]
        body, told = _performative(random, code, fields, {}, random.random() < 0.6)
        chunks.append(_framed(body, kind=1))
        words.append(f"{name}{told}")
    if random.random() < 0.5:
        chunks.append(AMQP_HEADER + _Speaker(random, CLIENT, is_strict=True).frame("open", is_hostile=False)[1])
        words.append("header and open")
    return Dialogue(seed, tuple(chunks), frozenset(range(len(chunks))), "reset", tuple(words))
