from typing import Any

from router.forwarding.anycast import Anycast

class SharedAnycast(Anycast):
    def __init__(self, *given: Any, **options: Any) -> None: ...
