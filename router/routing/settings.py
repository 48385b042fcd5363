"""How long routing waits before it speaks, gives up or forgets. All times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class RoutingSettings:
    """Raises ValueError unless every time is positive and a neighbor may miss at least one HELLO."""

    hello_interval_s: float = 1.0
    hello_max_age_s: float = 3.0
    # Replaces hello_max_age_s, if longer, on a connection that is not up yet: both routers may be busy starting.
    meeting_max_age_s: float = 3.0
    ra_interval_s: float = 30.0
    # How long the link state and addresses of an unreachable router are kept.
    remote_ls_max_age_s: float = 60.0
    # How long a starting edge router waits for its preferred uplink while another uplink is up.
    start_wait_s: float = 1.0
    # Changes of local addresses within this time of the last MAU go out in one MAU.
    mau_interval_s: float = 0.02
    # The same for link states, except losses.
    lsu_interval_s: float = 0.01

    def __post_init__(self) -> None:
        for field in fields(self):
            if (value := getattr(self, field.name)) <= 0:
                raise ValueError(f"{field.name} is {value}, expected more than 0")
        if self.hello_max_age_s <= self.hello_interval_s:
            raise ValueError(f"hello_max_age_s is {self.hello_max_age_s}, expected more than {self.hello_interval_s}")
