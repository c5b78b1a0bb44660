"""Where a PostgreSQL store is: what the driver is told, and what people are, who never see the password."""

import re

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lowwater.errors import BadSetting

SCHEMA = "lowwater"
"""Where the tables are unless the address says otherwise."""

_DEFAULTS = {
    "application_name": "lowwater",
    "connect_timeout": "10",
    "client_encoding": "UTF8",
    # A machine that is gone, or a firewall that forgot the connection, is noticed within a minute even by an idle reader.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}

_FOREVER = 1e9
"""Seconds; libpq takes a connect_timeout of 0 for no limit."""

# An @ or a / of a password that stands as it is would make the driver take a part of it for the name of a host.
_SHAPE = re.compile(r"postgres(ql)?://([^@/?#]*@)?[^@/?#]*(/[^@/?#]*)?(\?[^@#]*)?")


class Address:
    """A database and a schema in it; its text is without the password, and so fit for messages."""

    def __init__(self, address: str) -> None:
        """Read `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, or raise BadSetting without repeating any of it."""
        given = _given(address)
        options = str(given.get("options", ""))
        self.has_schema = "search_path" in options
        self.conninfo = make_conninfo(address, **{**_DEFAULTS, **given})
        self.patience = float(given.get("connect_timeout") or _DEFAULTS["connect_timeout"]) or _FOREVER
        """Seconds without a sign of the server after which it counts as gone."""
        self._password = str(given.get("password", ""))
        user = f"{given['user']}@" if "user" in given else ""
        port = f":{given['port']}" if "port" in given else ""
        self._shown = f"postgresql://{user}{given.get('host', '')}{port}/{given.get('dbname', '')}"

    def __repr__(self) -> str:
        return self._shown

    def without_password(self, text: str) -> str:
        """Return the text with the password, should it be in it, left out."""
        return text.replace(self._password, "…") if self._password else text


def _given(address: str) -> dict[str, str]:
    try:
        if _SHAPE.fullmatch(address):
            return {name: str(value) for name, value in conninfo_to_dict(address).items()}
    except psycopg.ProgrammingError:
        pass
    raise BadSetting(
        "the address of the PostgreSQL store cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
        "with the special characters of a password as %40 and the like"
    )
