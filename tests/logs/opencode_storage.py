"""Sessions as OpenCode writes them: into files, into its database, as exports."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

START = 1_767_225_600_000
Fields = dict[str, Any]


class Storage:
    """Sessions as OpenCode keeps them, before they are written in one of its ways."""

    def __init__(self) -> None:
        self.sessions: dict[str, Fields] = {}
        self.messages: dict[str, list[Fields]] = {}
        self.parts: dict[str, list[Fields]] = {}

    def session(self, id: str, **fields: object) -> None:
        time = {"created": START, "updated": START}
        self.sessions[id] = {"id": id, "projectID": "p", "version": "1.0.0", "time": time} | fields
        self.messages[id] = []

    def message(self, session: str, id: str, role: str, *parts: Fields, **fields: object) -> None:
        at = START + 1000 * sum(map(len, self.messages.values()))
        time = {"created": at} | ({"completed": at + 900} if role == "assistant" else {})
        self.messages[session].append({"id": id, "sessionID": session, "role": role, "time": time} | fields)
        own = {"sessionID": session, "messageID": id}
        self.parts[id] = [{"id": f"prt_{id}_{at:03}", **own, **part} for at, part in enumerate(parts)]


def as_files(storage: Storage, folder: Path) -> Path:
    root = folder / "storage"
    for id, session in storage.sessions.items():
        _write(root / "session" / "p" / f"{id}.json", session)
        for message in storage.messages[id]:
            _write(root / "message" / id / f"{message['id']}.json", message)
            for part in storage.parts[message["id"]]:
                _write(root / "part" / message["id"] / f"{part['id']}.json", part)
    return root


def as_database(storage: Storage, folder: Path) -> Path:
    path = folder / "opencode.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "PRAGMA synchronous = OFF;"
        "CREATE TABLE session (id TEXT, parent_id TEXT, time_created INTEGER);"
        "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);"
        "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);"
    )
    for id, session in storage.sessions.items():
        connection.execute("INSERT INTO session VALUES (?, ?, ?)", (id, session.get("parentID"), START))
        for message in storage.messages[id]:
            values = (message["id"], id, START, json.dumps(_without(message, "id", "sessionID")))
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", values)
            for part in storage.parts[message["id"]]:
                data = json.dumps(_without(part, "id", "sessionID", "messageID"))
                connection.execute(
                    "INSERT INTO part VALUES (?, ?, ?, ?)", (part["id"], message["id"], id, data)
                )
    connection.commit()
    connection.close()
    return path


def as_exports(storage: Storage, folder: Path) -> Path:
    for id, session in storage.sessions.items():
        messages = [{"info": info, "parts": storage.parts[info["id"]]} for info in storage.messages[id]]
        _write(folder / "exports" / f"{id}.json", {"info": session, "messages": messages})
    return folder / "exports"


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))


def _without(fields: Fields, *names: str) -> Fields:
    return {name: value for name, value in fields.items() if name not in names}


Way = Callable[[Storage, Path], Path]


def text(said: str, **fields: object) -> Fields:
    return {"type": "text", "text": said} | fields


def tool(call: str, **state: object) -> Fields:
    told = {"status": "completed", "input": {"path": "a"}, "output": "text of a"} | state
    return {"type": "tool", "callID": call, "tool": "read", "state": told}


def finish(**tokens: object) -> Fields:
    told = {"input": 10, "output": 5, "reasoning": 0, "cache": {"read": 80, "write": 7}} | tokens
    return {"type": "step-finish", "reason": "stop", "cost": 0, "tokens": told}


def conversation() -> Storage:
    storage = Storage()
    storage.session("ses_1")
    storage.message("ses_1", "msg_1", "user", text("Read a."), system="Be brief.")
    ran = tool("c1", time={"start": START + 1500, "end": START + 2500})
    thought = {"type": "reasoning", "text": "I should read it."}
    parts = ({"type": "step-start"}, thought, text("Reading."), ran, finish())
    storage.message("ses_1", "msg_2", "assistant", *parts, modelID="m", parentID="msg_1")
    said = text("Done.", time={"start": START, "end": START + 2700})
    storage.message("ses_1", "msg_3", "assistant", {"type": "step-start"}, said, finish(), modelID="m")
    return storage
