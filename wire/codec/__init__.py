"""AMQP 1.0's encodings, both directions: types, composite types with their fields, frames. Knows no engine and no node.

    scan        is this value well formed? [1.6]
    table       which fields does each performative, terminus, error and delivery state have? [2.7], [2.8], [3.4], [3.5]
    composites  are the fields of a described list of the right types, and where do they stand?

Spec: AMQP 1.0 part 1, and the definitions of parts 2 to 5.
"""
