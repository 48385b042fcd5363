"""Base class of all mappings of a topology file, and the types of values in them.

Units: ``_s`` seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from addressing.errors import BadValue
from addressing.names import NODE_NAME_PATTERN, USER_NAME_PATTERN, check_node_name, check_router_name, check_user_name
from addressing.pattern import check_pattern, check_permission_pattern

MAX_LIMIT = 10**15


def checked(check: Callable[[str], Any]) -> AfterValidator:
    """Return a pydantic validator made from ``check``, which raises BadValue; the validator reports the error's code.

    Values in ``forgiven`` of the validation context were reported before, and pass, so that the rest of the file can be
    checked.
    """

    def validate(value: str, info: ValidationInfo) -> str:
        if info.context and value in info.context["forgiven"]:
            return value
        try:
            check(value)
        except BadValue as error:
            raise PydanticCustomError(error.code, "{reason}", {"reason": str(error)}) from None
        return value

    return AfterValidator(validate)


def listed(value: Any) -> Any:
    """Return a list of one text where the author wrote a single text instead of a list; any other value unchanged."""
    return [value] if isinstance(value, str) else value


NodeName = Annotated[str, checked(check_node_name), Field(json_schema_extra={"pattern": NODE_NAME_PATTERN})]
RouterName = Annotated[str, checked(check_router_name), Field(json_schema_extra={"pattern": NODE_NAME_PATTERN})]
UserName = Annotated[str, checked(check_user_name), Field(json_schema_extra={"pattern": USER_NAME_PATTERN})]
AddressPattern = Annotated[str, checked(check_pattern)]
AddressPatterns = Annotated[tuple[AddressPattern, ...], BeforeValidator(listed)]
PermissionPattern = Annotated[str, checked(check_permission_pattern)]
PermissionPatterns = Annotated[tuple[PermissionPattern, ...], BeforeValidator(listed)]
NodeNames = Annotated[tuple[str, ...], BeforeValidator(listed)]
Host = Annotated[str, Field(min_length=1, max_length=255)]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=86400, allow_inf_nan=False)]
LongSeconds = Annotated[float, Field(gt=0, le=315_360_000, allow_inf_nan=False)]


class TopologyPart(BaseModel):
    """A mapping of the topology file. Immutable. Unknown keys are refused, keys that begin with x- are ignored.

    A key with nothing after it counts as absent: so an author may comment out everything below a key.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={"patternProperties": {"^x-": {}}},
    )

    @model_validator(mode="before")
    @classmethod
    def _from_source(cls, value: Any) -> Any:
        value = cls._from_shorthand(value)
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None and not str(key).startswith("x-")}
        return value

    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        """Return the mapping that ``value`` is short for, or else ``value``.

        Nothing after a name, as in ``r1:`` under ``routers``, is short for an empty mapping. Subclasses add short forms
        of their own.
        """
        return {} if value is None else value
