"""Link logs for those who run a mesh: what writes them, makes some up, and reports what is in them."""
