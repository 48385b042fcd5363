"""A client library over asyncio: connections, links with credit, message bodies in pieces, and its own errors."""
