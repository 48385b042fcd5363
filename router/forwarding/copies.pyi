class Copies:
    used_bytes: int
    limit_bytes: int
    def __init__(self, limit_bytes: int) -> None: ...
