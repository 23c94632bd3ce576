"""The sample of a new project: a day in three rooms of a cold store, with an open door and a change of relation."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

#: Time between readings.
STEP = timedelta(minutes=5)
FIRST = datetime(2025, 6, 2)
ROOMS = ("A", "B", "C")
_DAY = timedelta(days=1) // STEP
#: Steps of the day during which the door of room B is open, and from which on compressors need more power.
_DOOR, _CHANGE = range(126, 131), 204


def sample() -> str:
    """The rows of one local day, as they land; always the same."""
    lines = ["time,room,temperature,power"]
    for step in range(_DAY):
        when = FIRST + step * STEP
        for number, room in enumerate(ROOMS):
            wave = math.sin(2 * math.pi * (step / 24 + number / 3)) + 0.3 * math.sin(2 * math.pi * step / 7 + number)
            temperature = -20.0 + 0.8 * wave
            noise = 0.05 * math.sin(12.9898 * (step * len(ROOMS) + number))
            power = 2.0 - 0.25 * (temperature + 20.0) + (0.9 if step >= _CHANGE else 0.0) + noise
            if room == "B" and step in _DOOR:
                temperature += 1.3 * (step - _DOOR.start + 1)
                power += 0.6
            lines.append(f"{when:%Y-%m-%d %H:%M},{room},{temperature:.2f},{power:.2f}")
    return "\n".join(lines) + "\n"
