"""Where accepted messages outlive the process. FORMAT.md shows what lies on the disk."""
