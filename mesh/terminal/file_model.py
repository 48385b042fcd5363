"""The common base of the models of files that users write for commands: drill files and traffic profiles."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from mesh.terminal.units import parse_size_bytes


def listed(value: Any) -> Any:
    """Accept a single string or mapping where a list is expected."""
    return [value] if isinstance(value, str | dict) else value


Size = Annotated[int, BeforeValidator(lambda value: parse_size_bytes(str(value))), Field(ge=0, le=64 * 1024 * 1024)]
"""A size in bytes, at most 64 MiB; the file may give the size with a unit, such as 10kB."""
Names = Annotated[tuple[str, ...], BeforeValidator(listed)]


class FileMapping(BaseModel):
    """A mapping of the file, immutable. Keys that begin with x- are ignored; other unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _without_comments(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None and not str(key).startswith("x-")}
        return value
