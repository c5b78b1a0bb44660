"""Commands and groups whose help reads well."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose help does not call its switches `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer keeps the type private
        """Return the parameters, switches without a label."""
        return _unlabelled(super().get_params(ctx))


class Group(TyperGroup):
    """A group whose help does not call its switches `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer keeps the type private
        """Return the parameters, switches without a label."""
        return _unlabelled(super().get_params(ctx))


def _unlabelled(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params
