"""Links of clients at a broker: attach and detach, messages that come in and go out, and their settlement."""
