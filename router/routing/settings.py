"""The times of the routing core, in seconds: how often it sends messages, and when it drops connections or state."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class RoutingSettings:
    """The times of the routing core, in seconds.

    Raises ValueError unless every time is positive, and ``hello_max_age_s``, after which a silent connection is
    dropped, is longer than ``hello_interval_s``.
    """

    hello_interval_s: float = 1.0
    hello_max_age_s: float = 3.0
    # On a connection without HELLO in both directions yet, meeting_max_age_s replaces hello_max_age_s if longer: both
    # routers may be busy starting.
    meeting_max_age_s: float = 3.0
    ra_interval_s: float = 30.0
    # How long the link state and addresses of an unreachable router are kept.
    remote_ls_max_age_s: float = 60.0
    # How long a starting edge router waits for its preferred uplink while another uplink is up.
    start_wait_s: float = 1.0
    # Changes of this router's addresses within this time of its last MAU wait, and go out in one MAU.
    mau_interval_s: float = 0.02
    # Changed link states within this time of the last LSU wait, and go out together; a lost connection does not wait.
    lsu_interval_s: float = 0.01

    def __post_init__(self) -> None:
        for field in fields(self):
            if (value := getattr(self, field.name)) <= 0:
                raise ValueError(f"{field.name} is {value}, expected more than 0")
        if self.hello_max_age_s <= self.hello_interval_s:
            raise ValueError(f"hello_max_age_s is {self.hello_max_age_s}, expected more than {self.hello_interval_s}")
