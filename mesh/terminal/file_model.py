"""The common base of the models of files that users write for commands: drill files and traffic profiles."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from mesh.terminal.units import parse_size_bytes


def listed(value: Any) -> Any:
    """Return a single string or mapping as a list of one, and any other value unchanged, for keys that take a list."""
    return [value] if isinstance(value, str | dict) else value


Size = Annotated[int, BeforeValidator(lambda value: parse_size_bytes(str(value))), Field(ge=0, le=64 * 1024 * 1024)]
"""A size in bytes, at most 64 MiB; the file may give the size with a unit, such as 10kB."""
Names = Annotated[tuple[str, ...], BeforeValidator(listed)]


class FileMapping(BaseModel):
    """The base of the models of mappings in a file that a user writes, immutable. An unknown key is an error, unless it
    begins with x-. A key without a value counts as missing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _without_comments(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None and not str(key).startswith("x-")}
        return value
