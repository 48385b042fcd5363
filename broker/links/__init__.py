"""Links of clients at a broker: who may attach, how messages come in and go out, and how they are settled."""
