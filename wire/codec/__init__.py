"""Decoding and encoding of AMQP 1.0: types, composite types with their fields, frames. Independent of proton's engine.

    scan        checks that a value is well formed [1.6]
    table       has the fields of each performative, terminus, error and delivery state [2.7], [2.8], [3.4], [3.5]
    composites  checks the types of the fields of a described list, and finds the place of each field

Spec: AMQP 1.0 part 1, and the definitions of parts 2 to 5.
"""
