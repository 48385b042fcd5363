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
    # How long the link state and addresses of a router that is out of reach are kept.
    remote_ls_max_age_s: float = 60.0
    # How long a starting edge router waits for its preferred uplink while another uplink is up.
    start_wait_s: float = 1.0
    # The time after a MAU during which changes of this router's addresses wait, to go out in one MAU.
    mau_interval_s: float = 0.02
    # The time after an LSU during which changed link states wait, to go out together. A lost connection or a higher
    # cost does not wait.
    lsu_interval_s: float = 0.01

    # The time after which a router that has not confirmed this router's addresses is asked for the confirmation again.
    check_interval_s: float = 0.25

    def __post_init__(self) -> None:
        for field in fields(self):
            if (value := getattr(self, field.name)) <= 0:
                raise ValueError(f"the routing time {field.name} is {value} s, expected more than 0")
        if self.hello_max_age_s <= self.hello_interval_s:
            raise ValueError(
                f"hello_max_age_s {self.hello_max_age_s}: expected more than hello_interval_s {self.hello_interval_s}"
            )
