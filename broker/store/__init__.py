"""The store: accepted messages outlive the process. FORMAT.md shows the files on disk."""
