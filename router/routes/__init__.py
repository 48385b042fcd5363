"""Link routes: links of clients, each tied to one link at a broker."""
