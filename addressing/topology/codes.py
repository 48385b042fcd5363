"""Codes of the topology loader (AMxxx): the meaning of each code, and the usual fix of the mistake.

A code never changes its meaning; a retired code is not given out again. First digit: 0 the file, 1 keys, values and
names, 2 connections and ports, 3 brokers, 4 addresses, 5 users and TLS, 6 drills.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of mistake: ``title`` heads the reference, ``fix`` is shown when an error has no better fix."""

    code: str
    title: str
    explanation: str
    fix: str


_ALL = (
    Code(
        "AM001",
        "no such topology file",
        "Nothing is at the path that was given, or no amqpmesh.yml is in the folder that was searched.",
        "name the file with -t FILE, or change to the folder that has amqpmesh.yml.",
    ),
    Code(
        "AM002",
        "the topology file cannot be read",
        "The path is a folder, or this user may not read it.",
        "give the path of a file that this user may read.",
    ),
    Code(
        "AM003",
        "the file is not UTF-8",
        "YAML is read as UTF-8. The place named is the first byte that is none; it is often a Latin-1 letter.",
        "save the file as UTF-8.",
    ),
    Code(
        "AM004",
        "the file is not YAML",
        "The YAML syntax breaks at this place. Frequent causes: a tab used to indent, a bracket that is not closed, "
        "or a pattern that begins with * or #, which YAML takes for an alias or a comment unless it is quoted.",
        "mend the YAML at this place.",
    ),
    Code(
        "AM005",
        "a key is given twice",
        "The same key stands twice in one mapping. YAML readers differ in which one they take, so neither is taken.",
        "keep one of the two.",
    ),
    Code(
        "AM006",
        "the file is empty",
        "There is nothing in the file, or only comments.",
        "begin with 'mesh: NAME' and 'routers:'; the folder topologies/ has examples to copy.",
    ),
    Code(
        "AM007",
        "the file is not a mapping",
        "At its top level a topology is a mapping with keys such as mesh, routers, brokers, addresses.",
        "begin with 'mesh: NAME' and 'routers:'.",
    ),
    Code(
        "AM008",
        "a YAML feature that topologies do not use",
        "Tags (!name), an alias inside the value it names, merging something that is no mapping, and files that grow "
        "beyond 200,000 values by aliases are refused. Anchors, aliases and merge keys (<<) are fine.",
        "write the value out.",
    ),
    Code(
        "AM009",
        "a pattern that YAML takes for a comment",
        "A warning. Where a word may begin, '#' begins a comment, up to the end of the line: '#: anycast' declares "
        "nothing, 'send: #' allows nothing. Within a word, as in 'news.#', it does not.",
        'quote the pattern, "#".',
    ),
    Code(
        "AM101",
        "unknown key",
        "The key means nothing at this place. It is refused rather than ignored, because a misspelt option "
        "would silently not apply. Keys that begin with x- are ignored and yours to use.",
        "correct the key, remove it, or begin it with x- to have it ignored.",
    ),
    Code(
        "AM102",
        "a required key is missing",
        "This mapping needs the key named in the message.",
        "add the key.",
    ),
    Code(
        "AM103",
        "unknown router",
        "A connection or a broker names a router that is not declared under 'routers'.",
        "add a router of that name, or correct the name.",
    ),
    Code(
        "AM104",
        "unknown broker",
        "An address, or default_broker, names a broker that is not declared under 'brokers'.",
        "add a broker of that name, or correct the name.",
    ),
    Code(
        "AM105",
        "a value of the wrong type",
        "For example text where a number is expected, or a list where a mapping is expected.",
        "write a value of the expected type.",
    ),
    Code(
        "AM106",
        "a value that is not allowed",
        "The value has the right type, but is out of range or none of the allowed words.",
        "choose one of the expected values.",
    ),
    Code(
        "AM107",
        "malformed name",
        "Names of meshes, routers and brokers appear in file names, certificates and addresses: at most 64 letters, "
        "digits, '_', '.' and '-', beginning with a letter or digit. Names of users may also contain '@' and '+'. "
        "No router may be called 'all': that word means every router in the routing protocol.",
        "choose a name of letters, digits, '_', '.' and '-'.",
    ),
    Code(
        "AM108",
        "a router and a broker with one name",
        "Routers and brokers are both nodes; 'amqpmesh node NAME' and the certificates tell them apart by name only.",
        "rename one of them.",
    ),
    Code(
        "AM201",
        "a router that connects to itself",
        "A connection joins two different routers.",
        "remove the entry, or name another router.",
    ),
    Code(
        "AM202",
        "a connection declared twice",
        "One connection joins two routers in both directions; either end may declare it, but only one may.",
        "keep one of the two declarations.",
    ),
    Code(
        "AM203",
        "two listeners on one port",
        "Two nodes or listeners would bind the same port on the same machine. Nodes with the same 'host' count as "
        "one machine, and 0.0.0.0 or :: includes every address of it. A node without 'port' got one by its position.",
        "give one of them another port.",
    ),
    Code(
        "AM204",
        "the routers are not all connected",
        "A warning: no path of connections leads from some routers to the others, so their clients cannot reach each "
        "other. The mesh starts nevertheless.",
        "add a connection between the parts.",
    ),
    Code(
        "AM205",
        "a neighbor would be dead before it can speak",
        "Routers say HELLO every 'hello_interval_s'. One HELLO that comes late must not look like a dead router: "
        "traffic would change its path for nothing.",
        "raise hello_max_age_s to three times hello_interval_s or more, or remove it.",
    ),
    Code(
        "AM206",
        "a connection to an edge router",
        "An edge router ('mode: edge') connects to interior routers and goes by way of one of them; it leads on to "
        "nobody, so no router connects to it.",
        "declare the connection at the edge, to an interior router, or remove 'mode: edge' there.",
    ),
    Code(
        "AM207",
        "an edge router without an uplink",
        "An edge router ('mode: edge') reaches the mesh over the routers in its 'connect': the cheapest, else the "
        "next. Without any it reaches nobody.",
        "name at least one interior router in 'connect', better two.",
    ),
    Code(
        "AM208",
        "a broker at an edge router",
        "Only interior routers connect to brokers: the others find the way to a broker by the paths between them.",
        "name interior routers in 'routers', or none for all of them.",
    ),
    Code(
        "AM301",
        "a broker needs either data or url",
        "'data' (a folder) makes an embedded broker that amqpmesh runs; 'url' attaches an existing one. "
        "It is one or the other.",
        "keep 'data' for an embedded broker, or 'url' for an existing one.",
    ),
    Code(
        "AM302",
        "malformed broker URL",
        "Expected is amqp://[user[:password]@]host[:port] or amqps://...; special characters percent-encoded. "
        "A prefix for addresses goes into address_prefix, a virtual host into hostname.",
        "write amqp://host:port or amqps://host:port.",
    ),
    Code(
        "AM303",
        "a key for the other kind of broker",
        "'host' and 'port' say where an embedded broker listens, and 'disk_free_min_bytes' is about its disk; "
        "'address_prefix', 'hostname', 'subscriptions' and 'tls' say how to use an existing one.",
        "remove the key.",
    ),
    Code(
        "AM304",
        "two brokers in one folder",
        "Each embedded broker owns its data folder: two would corrupt each other's store.",
        "give each broker a folder of its own.",
    ),
    Code(
        "AM305",
        "subscriptions that users can take from each other",
        "A warning. An existing broker knows a durable subscription by the client's container-id and link name, which "
        "another user can use, too. With 'subscriptions: by_user' the user's name is part of the name at the broker; "
        "subscriptions that are there already keep their old names, and are not found under the new ones: consume what "
        "they hold, or end them, before.",
        "add 'subscriptions: by_user' to the broker.",
    ),
    Code(
        "AM401",
        "malformed address or pattern",
        "An address is tokens separated by '.' or '/'. In a pattern a token may be '*' (exactly one token) or '#' "
        "(any number of tokens); as part of a longer token they are not allowed. White space and control characters "
        "are not allowed, nor is a leading 'amqp:'.",
        "correct the pattern.",
    ),
    Code(
        "AM402",
        "an internal address",
        "Addresses that begin with _amqpmesh/ or _topo/ belong to the mesh itself.",
        "choose another address.",
    ),
    Code(
        "AM403",
        "a queue or topic without a broker",
        "Queues and topics live on a broker. Without 'broker' (or 'brokers') the address uses default_broker, or "
        "the only broker there is.",
        "name the broker with 'broker: NAME', or set default_broker.",
    ),
    Code(
        "AM404",
        "a topic on several brokers",
        "A queue may be spread over several brokers. A topic may not: a subscription lives on one broker and would "
        "miss what is published to the others.",
        "name one broker.",
    ),
    Code(
        "AM405",
        "an option that this type of address does not have",
        "'distribution', 'spill', 'fallback' and 'retransmit' are for anycast; 'broker', 'brokers', 'broker_address' "
        "are for queue and topic, as are 'dead_letter', 'max_delivery_attempts', 'expiry', 'max_messages', 'max_bytes' "
        "and 'when_full'; 'max_queues', 'max_queues_per_user' and 'queue_expiry_s' are for queue; "
        "'subscription_expiry_s' is for a topic, 'spill' is for distribution closest; 'priority' is for all but "
        "unavailable.",
        "remove the option, or change the type.",
    ),
    Code(
        "AM406",
        "options that exclude each other",
        "'broker' and 'brokers' say the same twice. 'broker_address' or 'fallback' on a pattern would fold every "
        "address that matches into one queue.",
        "keep one of them.",
    ),
    Code(
        "AM407",
        "unknown fallback",
        "The fallback of an address is the address of a queue, and nothing declares this one.",
        "declare the queue under 'addresses', or correct the name.",
    ),
    Code(
        "AM408",
        "a fallback that is no queue",
        "Only a queue keeps messages until somebody takes them. A topic, a multicast or another anycast does not, and "
        "a pattern stands for many queues.",
        "name a queue.",
    ),
    Code(
        "AM409",
        "two addresses with one fallback",
        "What comes back from a fallback goes to the takers of its address. From a queue that two addresses share "
        "nobody could tell which message belongs to which.",
        "give each address a queue of its own.",
    ),
    Code(
        "AM410",
        "dead letters or expired messages that cannot go there",
        "'dead_letter' and 'expiry' name a queue that the same broker keeps: the message moves in one step. It is "
        "declared, is no pattern, and lies on every broker of the address.",
        "name such a queue, declare one, or have the one that is named be on the other brokers of the address too.",
    ),
    Code(
        "AM411",
        "dead letters that go round",
        "By 'dead_letter' and 'expiry' a message would come back to a queue that gave it up before, and go round.",
        "have the last queue of the chain keep what it gets: remove its 'dead_letter' or 'expiry'.",
    ),
    Code(
        "AM412",
        "an option of a queue that lacks what it needs",
        "'max_delivery_attempts' needs a 'dead_letter', since a message is never dropped because its consumers fail. "
        "'when_full' needs 'max_messages' or 'max_bytes', and 'when_full: dead-letter' a 'dead_letter'. One slow "
        "subscription stops no publisher: topics have 'drop-oldest' and 'dead-letter'.",
        "add what is missing, or remove the option.",
    ),
    Code(
        "AM413",
        "a policy for an existing broker's queue",
        "An existing broker has policies of its own for dead letters, expiry and length, and its own tools.",
        "remove the option.",
    ),
    Code(
        "AM414",
        "a topic that subscriptions with wildcards miss",
        "A warning. A subscription lives on one broker, that of the entry its filter falls under. Where another topic "
        "that the filter matches is on a second broker, nothing that is sent to it comes to that subscription.",
        "keep the topics on one broker, or have consumers subscribe to each.",
    ),
    Code(
        "AM415",
        "two addresses that are one at their broker, and differ",
        "By 'broker_address' two addresses are the same queue or topic at an embedded broker. It is one or the other, "
        "and has one limit and one dead letter queue, so both have to say the same of it.",
        "give both the same type and options, or another 'broker_address'.",
    ),
    Code(
        "AM416",
        "a limit of a pattern on one queue",
        "'max_queues', 'max_queues_per_user' and 'queue_expiry_s' are about queues that clients make under a pattern. "
        "A queue whose name stands in the file is one, and never expires.",
        "remove the option, or give it to a pattern.",
    ),
    Code(
        "AM501",
        "malformed password",
        "Passwords are kept as SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>, never as plain text. "
        "'amqpmesh user add NAME' makes the line.",
        "make the secret with: amqpmesh user add NAME",
    ),
    Code(
        "AM502",
        "a password for 'anonymous'",
        "The user 'anonymous' stands for connections that did not say who they are; it has no password.",
        "remove the password, or rename the user.",
    ),
    Code(
        "AM503",
        "a listener that nobody can use",
        "The listener requires authentication, but no users are defined and it has no TLS to read a certificate from.",
        "define users, add tls, or write 'authentication: none'.",
    ),
    Code(
        "AM504",
        "a certificate without its key",
        "'cert' and 'key' belong together. Without both, the certificate authority of the mesh issues a certificate.",
        "give both 'cert' and 'key', or neither.",
    ),
    Code(
        "AM601",
        "a malformed expectation",
        "What a drill expects is a metric, a comparison and a value with its unit, such as 'outage < 500ms' or "
        "'lost == 0'. Metrics: docs/reference/drills.md.",
        "write METRIC, one of < <= == != >= >, and a value, such as 'p(99) < 250ms'.",
    ),
    Code(
        "AM602",
        "an unknown fault",
        "A step of a drill's method names a fault that does not exist. All of them: docs/reference/drills.md.",
        "write one of the faults of docs/reference/drills.md.",
    ),
    Code(
        "AM603",
        "a fault that cannot be injected here",
        "The fault is of a kind that its target does not have: a link that the topology does not declare, a disk of an "
        "existing broker, a certificate where the nodes talk in plain text.",
        "name a target of the topology that has what is to be broken.",
    ),
    Code(
        "AM604",
        "traffic that no drill can make",
        "A load of a drill names an address that clients cannot use, or a router without a listener for them.",
        "name an address of the topology, and routers that have a listener.",
    ),
)

CODES: dict[str, Code] = {code.code: code for code in _ALL}
