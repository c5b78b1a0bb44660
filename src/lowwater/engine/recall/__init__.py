"""Recall: getting elided or summarised content back, by handle, by search, by people and by models."""

from lowwater.engine.recall.expanding import expand
from lowwater.engine.recall.finding import Search, recall
from lowwater.engine.recall.room import Room, room_for, room_in
from lowwater.engine.recall.schemas import offers_recall
from lowwater.engine.recall.tools import RecallTools
from lowwater.values.recalled import Child, Expansion, Recalled, Told

__all__ = [
    "Child",
    "Expansion",
    "RecallTools",
    "Recalled",
    "Room",
    "Search",
    "Told",
    "expand",
    "offers_recall",
    "recall",
    "room_for",
    "room_in",
]
