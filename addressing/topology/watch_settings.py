"""Settings under ``watch`` of a topology file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from addressing.topology.part import Port, TopologyPart


def _word(value: Any) -> Any:
    # YAML 1.1 editors write booleans for the words on and off.
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


class Watch(TopologyPart):
    """Settings of the observer, which shows the nodes of its host. A bare word or number is short for mode or port."""

    mode: Annotated[Literal["on", "off"], BeforeValidator(_word)] = "on"
    """on: `amqpmesh up` starts an observer beside the nodes. off: nobody observes, unless `amqpmesh watch` runs."""
    port: Port | None = None
    """Port on 127.0.0.1 where the observer answers over HTTP (default: any free port, which its log names)."""

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return {"port": value}
        return {"mode": value} if isinstance(value, (str, bool)) else super()._from_shorthand(value)
