"""How much time passes between messages."""

from msgspec import Struct

from tests.generated.draw import Draw


class Pauses(Struct, frozen=True, kw_only=True):
    """How often the user goes away before writing again: for a coffee (5 to 60 minutes), overnight (9 to 15 hours)."""

    coffee: float = 0.2
    overnight: float = 0.025

    def before_user(self, draw: Draw, text: str) -> float:
        """Return the seconds until the user has read, thought and written `text`."""
        if draw.chance(self.overnight):
            return draw.within(9 * 3600, 15 * 3600)
        if draw.chance(self.coffee):
            return draw.within(300, 3600)
        return draw.skewed(45, 0.9, most=280) + min(len(text) / 40, 15)


def before_answer(draw: Draw, text: str) -> float:
    """Return the seconds in which a model writes `text`, thinking included."""
    return draw.skewed(3.5, 0.6, most=40) + len(text) / 260
