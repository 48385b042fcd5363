"""The topology file: its model, the loader with all checks, error codes, repair, schema, drawing and editing."""
