"""What is stored has names of its own: they are frozen, they outlive a rename, and what is unknown is reported."""

import logging
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import fields

from lowwater import Lowwater, open_store
from lowwater.core.entries import Rewound
from lowwater.core.events import TurnRecord
from lowwater.core.stored import Append
from lowwater.core.stored_form import FORM, all_stored, names_in, stored_as, stored_names
from lowwater.errors import NewerSchema, UnknownForm
from lowwater.stores.serialization import seal, unseal
from lowwater.testing.fakes import ScriptedClock
from lowwater.testing.store_contract import said
from tests.stores.stored_list import PLACE, stored_classes, stored_list


def test_what_is_stored_is_what_the_list_says() -> None:
    """If this fails, stores that exist could not be read: see `core/stored_form.py` before writing the list again."""
    assert stored_list() == PLACE.read_text()


def test_every_stored_class_has_its_names_from_the_table_and_refuses_others() -> None:
    tables = {name: list(stored_names(name).items()) for name in all_stored() if name != "part"}
    classes = stored_classes()
    used = [[(field.name, field.encode_name) for field in fields(cls)] for cls in classes]
    assert sorted(used) == sorted(tables.values())
    assert [cls for cls in classes if not cls.__struct_config__.forbid_unknown_fields] == []


def test_a_renamed_class_and_attribute_is_stored_as_before() -> None:
    names = names_in("at to discard_later=drops_later")

    class Returned(
        Struct, frozen=True, kw_only=True, tag="rewound", rename=names.__getitem__, forbid_unknown_fields=True
    ):
        at: float
        to: int
        drops_later: bool = False

    now = msgspec.msgpack.encode(Rewound(at=1.0, to=2, discard_later=True))
    assert msgspec.msgpack.encode(Returned(at=1.0, to=2, drops_later=True)) == now
    assert msgspec.msgpack.decode(now, type=Returned).drops_later


def test_an_attribute_that_has_no_stored_name_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="'drops_later' has no name in the stored form of 'rewound'"):
        msgspec.defstruct("Returned", [("at", float), ("drops_later", bool)], rename=stored_as("rewound"))


def changed(path: Path, table: str, change: dict[str, Any], where: str = "1") -> None:
    """Store something as a Lowwater would that has other names, with the seal that belongs to it."""
    connection = sqlite3.connect(path)
    key = "rowid" if table == "carried" else "version"
    query = f"SELECT {key}, body FROM {table} WHERE {where} ORDER BY 1 DESC LIMIT 1"
    id, body = connection.execute(query).fetchone()
    told = msgspec.msgpack.decode(unseal(body)) | change
    connection.execute(
        f"UPDATE {table} SET body = ? WHERE {key} = ?", (seal(msgspec.msgpack.encode(told)), id)
    )
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("change", "why"),
    [({"undo": True}, "unknown field `undo`"), ({"type": "merged"}, "Invalid value 'merged'")],
    ids=["field", "tag"],
)
def test_an_entry_of_unknown_form_is_reported_and_what_came_before_can_be_read(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    path = tmp_path / "sessions.db"
    store = open_store(f"sqlite:///{path}")
    first = store.append("s", 0, Append(entries=(said("a"),)))
    store.append("s", first, Append(entries=(Rewound(at=2.0, to=1, discard_later=True),)))
    store.close()
    changed(path, "entries", change, "kind = 'rewound'")
    store = open_store(f"sqlite:///{path}")
    with pytest.raises(UnknownForm, match=rf"entry 1 \(.*{why}.*use the Lowwater that stored it") as caught:
        store.read("s")
    assert caught.value.last_good_version == first
    assert len(store.read("s", until=first).entries) == 1
    store.close()


def test_a_turn_record_of_unknown_form_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    store = open_store(f"sqlite:///{path}")
    store.append("s", 0, Append(entries=(said("a"),), record=TurnRecord(at=1.0, model="m")))
    store.close()
    changed(path, "turns", {"tier": "fast"})
    store = open_store(f"sqlite:///{path}")
    with pytest.raises(UnknownForm, match=r"a turn record \(.*unknown field `tier`"):
        store.accounts()
    store.close()


def test_a_message_of_unknown_form_is_reported_however_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    store = open_store(f"sqlite:///{path}")
    version = store.append("s", 0, Append(entries=(said("a"),)))
    store.close()
    connection = sqlite3.connect(path)
    (body,) = connection.execute("SELECT body FROM contents").fetchone()
    other = msgspec.msgpack.encode(msgspec.msgpack.decode(body) | {"mood": "good"})
    key = seal(other)[:16]
    connection.execute("UPDATE contents SET body = ?, key = ?", (other, key))
    (entry,) = connection.execute("SELECT body FROM entries").fetchone()
    told = msgspec.msgpack.decode(unseal(entry)) | {"keys": [key]}
    connection.execute("UPDATE entries SET body = ?", (seal(msgspec.msgpack.encode(told)),))
    connection.commit()
    connection.close()
    store = open_store(f"sqlite:///{path}")
    with pytest.raises(UnknownForm, match="unknown field `mood`"):
        store.read("s")
    with pytest.raises(UnknownForm, match="unknown field `mood`"):
        store.messages("s", 1, 2, version=version)
    assert store.search("a") == []
    store.close()


def played(path: Path) -> Lowwater:
    lowwater = Lowwater(model="gpt-5", store=f"sqlite:///{path}", clock=ScriptedClock(1_000.0))
    session = lowwater.session("s")
    session.append({"role": "user", "content": "hello"})
    session.prepare()
    usage = {"prompt_tokens": 900, "completion_tokens": 5}
    session.record({"choices": [{"message": {"role": "assistant", "content": "hi"}}], "usage": usage})
    return lowwater


def test_the_state_carries_the_version_of_its_form(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    lowwater = played(path)
    told = msgspec.msgpack.decode(lowwater.store.read("s").carried)
    assert next(iter(told.items())) == ("form", FORM)
    lowwater.close()


def test_a_state_in_a_newer_form_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    played(path).close()
    changed(path, "carried", {"form": FORM + 1, "mood": "good"})
    lowwater = Lowwater(model="gpt-5", store=f"sqlite:///{path}")
    before = lowwater.store.read("s").carried
    with pytest.raises(NewerSchema, match=rf"session 's': .*form {FORM + 1} .*use a newer Lowwater"):
        lowwater.session("s")
    assert lowwater.store.read("s").carried == before
    lowwater.close()


def test_a_field_of_the_state_that_is_unknown_or_unreadable_is_logged_and_the_others_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "sessions.db"
    played(path).close()
    changed(path, "carried", {"mood": "good", "meter": {"sum": 3}, "gaps": "none"})
    lowwater = Lowwater(model="gpt-5", store=f"sqlite:///{path}")
    with caplog.at_level(logging.WARNING, "lowwater"):
        session = lowwater.session("s")
        session.view()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert all("session 's'" in line and "use the Lowwater that stored it" in line for line in lines)
    for name in (
        "`mood` (unknown)",
        "`meter` (Object contains unknown field `sum`)",
        "`gaps` (Expected `array`",
    ):
        assert any(name in line for line in lines), name
    assert session.status().totals.prompt == 900, "the rest is still known"
    lowwater.close()
