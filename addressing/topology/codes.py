"""Error codes of the topology loader (AMxxx): the meaning of each code, and the usual fix of the mistake.

A code never changes its meaning; a retired code is not given out again. First digit: 0 the file, 1 keys, values and
names, 2 connections and ports, 3 brokers, 4 addresses, 5 users and TLS, 6 drills.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of mistake in a file. ``title`` heads the code's entry in the reference of error codes.

    ``fix`` is the usual remedy, which an error of the code shows if the check that found the mistake gave no remedy.
    """

    code: str
    title: str
    explanation: str
    fix: str


_ALL = (
    Code(
        "AM001",
        "no such topology file",
        "No file exists at the given path, or the searched folder has no amqpmesh.yml.",
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
        "YAML is read as UTF-8. The message shows the first byte that is not UTF-8, often a letter in Latin-1.",
        "save the file as UTF-8.",
    ),
    Code(
        "AM004",
        "the file is not YAML",
        "The YAML syntax breaks at this place. Frequent causes: a tab used to indent, a bracket that is not closed, "
        "or a pattern that begins with * or #, which YAML takes for an alias or a comment unless the pattern is "
        "quoted.",
        "mend the YAML at this place.",
    ),
    Code(
        "AM005",
        "a key is given twice",
        "The same key stands twice in one mapping. YAML readers differ in which value they use, so the file is "
        "refused.",
        "keep one of the two entries.",
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
        "Tags (!name), an alias inside its own anchor's value, a merge (<<) of something other than a mapping, and "
        "files that grow beyond 200,000 values by aliases are refused. Other anchors, aliases and merge keys are "
        "allowed.",
        "write the value out in full, without the feature.",
    ),
    Code(
        "AM009",
        "a pattern that YAML takes for a comment",
        "A warning. At the beginning of a word, '#' begins a comment, up to the end of the line: '#: anycast' declares "
        "nothing, 'send: #' allows nothing. Within a word, as in 'news.#', '#' begins no comment.",
        'quote the pattern, "#".',
    ),
    Code(
        "AM101",
        "unknown key",
        "This mapping has no such key. Unknown keys are refused rather than ignored, because a misspelt option "
        "would silently not apply. Keys that begin with x- are ignored: use them for notes and anchors.",
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
        "The value has another type than the key expects: text in place of a number, or a list in place of a mapping.",
        "write a value of the expected type.",
    ),
    Code(
        "AM106",
        "a value that is not allowed",
        "The value has the right type, but is out of range, or is not one of the allowed words.",
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
        "One connection joins two routers in both directions; one of the two routers declares the connection, not "
        "both.",
        "keep one of the two declarations.",
    ),
    Code(
        "AM203",
        "two listeners on one port",
        "Two nodes or listeners would bind the same port on the same machine. Nodes with the same 'host' count as "
        "one machine, and 0.0.0.0 or :: includes every address of that machine. A node without 'port' gets a port by "
        "its position in the file.",
        "give one of the two another port.",
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
        "'hello_max_age_s' is too small for 'hello_interval_s'",
        "Routers send HELLO every 'hello_interval_s'. A single late HELLO must not make a neighbor look dead: "
        "traffic would take another path for nothing.",
        "raise hello_max_age_s to three times hello_interval_s or more, or remove the key.",
    ),
    Code(
        "AM206",
        "a connection to an edge router",
        "An edge router ('mode: edge') connects to interior routers, and forwards nothing between other "
        "routers. No router connects to an edge router.",
        "declare the connection at the edge, to an interior router, or remove 'mode: edge' there.",
    ),
    Code(
        "AM207",
        "an edge router without an uplink",
        "An edge router ('mode: edge') reaches the mesh over the routers in its 'connect': the cheapest, else the "
        "next. Without a router in 'connect', the edge router reaches nobody.",
        "name at least one interior router in 'connect'; two are better.",
    ),
    Code(
        "AM208",
        "a broker at an edge router",
        "Only interior routers connect to brokers: edge routers reach a broker through interior routers.",
        "name interior routers in 'routers', or remove 'routers': then all interior routers connect to the broker.",
    ),
    Code(
        "AM301",
        "a broker needs either data or url",
        "'data' (a folder) makes an embedded broker that amqpmesh runs; 'url' attaches an existing one. "
        "A broker has exactly one of the two keys.",
        "keep 'data' for an embedded broker, or 'url' for an existing one.",
    ),
    Code(
        "AM302",
        "malformed broker URL",
        "Expected: amqp://[user[:password]@]host[:port] or amqps://..., with special characters percent-encoded. "
        "A prefix for addresses goes into address_prefix, a virtual host into hostname.",
        "write amqp://host:port or amqps://host:port.",
    ),
    Code(
        "AM303",
        "a key for the other kind of broker",
        "'host', 'port' and 'disk_free_min_bytes' are for embedded brokers, which listen and write to a disk here; "
        "'address_prefix', 'hostname', 'share_connections', 'subscriptions' and 'tls' are for existing brokers.",
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
        "a broker where users can take each other's subscriptions",
        "A warning. An existing broker knows a durable subscription by the client's container-id and link name, "
        "which another user can use, too. With 'subscriptions: by_user' the user's name is part of the name at the "
        "broker; existing subscriptions keep their old names, and are not found under the new names: before the "
        "change, consume their messages, or end the subscriptions.",
        "add 'subscriptions: by_user' to the broker.",
    ),
    Code(
        "AM401",
        "malformed address or pattern",
        "An address is tokens separated by '.' or '/'. In a pattern a token may be '*' (exactly one token) or '#' "
        "(any number of tokens); '*' and '#' are not allowed as part of a longer token. White space and control "
        "characters are not allowed, nor is a leading 'amqp:'.",
        "correct the pattern.",
    ),
    Code(
        "AM402",
        "an internal address",
        "Addresses that begin with _amqpmesh/ or _topo/ are reserved for the mesh itself.",
        "choose another address.",
    ),
    Code(
        "AM403",
        "a queue or topic without a broker",
        "Queues and topics live on a broker. Without 'broker' (or 'brokers') the address uses default_broker, or "
        "the only broker of the topology.",
        "name the broker with 'broker: NAME', or set default_broker.",
    ),
    Code(
        "AM404",
        "a topic on several brokers",
        "A queue may be spread over several brokers. A topic may not: a subscription lives on one broker, and would "
        "miss the messages that are published at the other brokers.",
        "name one broker.",
    ),
    Code(
        "AM405",
        "an option that is not valid for this type of address",
        "'distribution', 'spill', 'fallback' and 'retransmit' are for anycast; 'broker', 'brokers', 'broker_address' "
        "are for queue and topic, as are 'dead_letter', 'max_delivery_attempts', 'expiry', 'max_messages', 'max_bytes' "
        "and 'when_full'; 'max_queues', 'max_queues_per_user' and 'queue_expiry_s' are for queue; "
        "'subscription_expiry_s' is for a topic, 'fill_to' for topic and multicast, 'spill' for distribution closest; "
        "'priority' is for all but unavailable.",
        "remove the option, or change the type.",
    ),
    Code(
        "AM406",
        "two options that exclude each other",
        "'broker' and 'brokers' both name the brokers of an address. 'broker_address' or 'fallback' on a pattern "
        "would lead every matching address to one queue.",
        "keep one of them.",
    ),
    Code(
        "AM407",
        "unknown fallback",
        "The fallback of an address names a queue of the topology, and the topology declares no queue of this name.",
        "declare the queue under 'addresses', or correct the name.",
    ),
    Code(
        "AM408",
        "a fallback that is not a queue",
        "Only a queue keeps messages until a consumer takes them. A topic, a multicast or another anycast does not, "
        "and a pattern stands for many queues.",
        "name a queue.",
    ),
    Code(
        "AM409",
        "two addresses with one fallback",
        "Messages from a fallback queue go to the consumers of the fallback's address. In a queue that two addresses "
        "share, nothing says which address a message belongs to.",
        "give each address a queue of its own.",
    ),
    Code(
        "AM410",
        "a 'dead_letter' or 'expiry' queue that the broker cannot use",
        "'dead_letter' and 'expiry' name a queue at the same broker, since the broker moves a message in one step. "
        "The queue must be declared by its name, not by a pattern, and be on every broker of the address.",
        "name or declare such a queue, or put the named queue on the other brokers of the address, too.",
    ),
    Code(
        "AM411",
        "a cycle of 'dead_letter' and 'expiry' queues",
        "Along 'dead_letter' and 'expiry' a message would return to a queue that it has left before, again and again.",
        "end the chain: remove 'dead_letter' or 'expiry' of its last queue.",
    ),
    Code(
        "AM412",
        "an option of a queue without another option that it needs",
        "'max_delivery_attempts' needs a 'dead_letter', since the broker never drops a message because its consumers "
        "fail. 'when_full' needs 'max_messages' or 'max_bytes', and 'when_full: dead-letter' a 'dead_letter'. A slow "
        "subscription stops no publisher: for topics, 'when_full' is 'drop-oldest' or 'dead-letter'.",
        "add the missing option, or remove this option.",
    ),
    Code(
        "AM413",
        "a policy for an existing broker's queue",
        "An existing broker has its own policies, set with its own tools, for dead letters, expiry and length.",
        "remove the option.",
    ),
    Code(
        "AM414",
        "a topic that a subscription with wildcards misses",
        "A warning. A subscription lives on one broker: the broker of the entry that its filter falls under. If "
        "another topic that the filter matches is on a second broker, the subscription gets no message of that topic.",
        "keep the topics on one broker, or have consumers subscribe to each.",
    ),
    Code(
        "AM415",
        "two addresses with one 'broker_address' and different options",
        "Because of 'broker_address', two addresses are the same queue or topic at an embedded broker. That queue or "
        "topic has one type, one limit and one dead-letter queue, so both addresses need the same options.",
        "give both the same type and options, or another 'broker_address'.",
    ),
    Code(
        "AM416",
        "a limit for patterns on a single queue",
        "'max_queues', 'max_queues_per_user' and 'queue_expiry_s' are about queues that clients make under a pattern. "
        "A queue that is declared by its name is a single queue, and never expires.",
        "remove the option, or declare the option on a pattern.",
    ),
    Code(
        "AM501",
        "malformed password",
        "The topology file keeps passwords as SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>, never as "
        "plain text. 'amqpmesh user add NAME' prints that secret.",
        "make the secret with: amqpmesh user add NAME",
    ),
    Code(
        "AM502",
        "a password for 'anonymous'",
        "The user 'anonymous' stands for connections without a login, and so cannot have a password.",
        "remove the password, or rename the user.",
    ),
    Code(
        "AM503",
        "a listener that nobody can use",
        "The listener requires authentication, but the topology has no users, and without TLS clients have no "
        "certificate.",
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
        "An expectation of a drill is a metric, a comparison and a value with its unit, such as 'outage < 500ms' or "
        "'lost == 0'. Metrics: docs/reference/drills.md.",
        "write METRIC, one of < <= == != >= >, and a value, such as 'p(99) < 250ms'.",
    ),
    Code(
        "AM602",
        "an unknown fault",
        "A step of a drill's method names an unknown fault. docs/reference/drills.md lists all faults.",
        "write one of the faults of docs/reference/drills.md.",
    ),
    Code(
        "AM603",
        "a fault that cannot be injected here",
        "The target does not have the part that the fault breaks: a link that the topology does not declare, the "
        "disk of an existing broker, or a certificate where the nodes use plain text.",
        "name a target of the topology that has the part to break.",
    ),
    Code(
        "AM604",
        "a load that a drill cannot send or receive",
        "A load of a drill names an address that clients cannot use, or a router without a listener for them.",
        "name an address of the topology, and routers that have a listener.",
    ),
)

CODES: dict[str, Code] = {code.code: code for code in _ALL}
