"""Expected tables of the transforms example, computed in plain Python from its data."""

from __future__ import annotations

import json
from typing import Any

from tests.support.example_rows import Row

Table = list[list[Any]]


def tables_of_readings(readings: list[Row]) -> dict[str, Table]:
    """Returns the tables of all stateless models that read the stream."""
    tables: dict[str, Table] = {name: [] for name in ("explode_arrays", "explode_maps")}
    rows = [_row_tables(reading) for reading in readings]
    tables |= {name: [row[name] for row in rows] for name in rows[0]}
    for reading in readings:
        station, time = reading["station"], _time(reading)
        tables["explode_arrays"] += [[station, time, *each] for each in enumerate(reading["temperatures"])]
        tables["explode_maps"] += [[station, time, *each] for each in reading["sensors"].items()]
    return tables


def _row_tables(reading: Row) -> dict[str, list[Any]]:
    station, time, place = reading["station"], _time(reading), reading["place"]
    temperatures, sensors, alarms = reading["temperatures"], reading["sensors"], reading["alarms"]
    value = {"time": reading["time"].replace("Z", ".000Z"), "city": place["city"], "sensors": sensors}
    rain_and_wind = [sensors.get("wind"), sensors.get("rain")]
    return {
        "nested_select": [station, time, place["city"], place["at"]["lat"], place["at"]["lon"]],
        "struct_star": [station, place["at"]["lat"], place["at"]["lon"], place["city"]],
        "struct_of_row": [station, {"station": station, "temperatures": temperatures, "sensors": sensors}],
        "array_and_map_access": [station, temperatures[0], temperatures[-1], len(temperatures), *rain_and_wind],
        "fields_of_struct_arrays": [
            station,
            time,
            [alarm["kind"] for alarm in alarms],
            alarms[0]["level"] if alarms else None,
        ],
        "rows_to_json": [station, json.dumps(value, separators=(",", ":"))],
    }


def collected_alarms(readings: list[Row]) -> Table:
    """Returns the table of kinds and levels per station, in display order."""
    alarms = [(reading["station"], alarm) for reading in readings for alarm in reading["alarms"]]
    return [
        [
            station,
            sorted(alarm["kind"] for name, alarm in alarms if name == station),
            sorted({alarm["level"] for name, alarm in alarms if name == station}),
        ]
        for station in sorted({name for name, _ in alarms})
    ]


def tables_of_messages(messages: list[Row]) -> dict[str, Table]:
    """Returns the tables of the models that read JSON as text."""
    tables: dict[str, Table] = {name: [] for name in ("json_to_rows", "json_partly_text", "json_tuple_fields")}
    for message in messages:
        key, value = message["key"], _read(message["value"])
        device, speed, payload = value.get("device"), value.get("speed"), value.get("payload")
        text = payload if payload is None or isinstance(payload, str) else json.dumps(payload, separators=(",", ":"))
        volts = payload.get("volts") if isinstance(payload, dict) else None
        tables["json_to_rows"].append([key, device, speed, not value])
        tables["json_partly_text"].append([key, device, text, volts])
        tables["json_tuple_fields"].append([key, device, str(speed) if value else None])
    return tables


def _read(text: str) -> Row:
    try:
        return dict(json.loads(text))
    except ValueError:
        return {}


def _time(reading: Row) -> str:
    return str(reading["time"]).replace("T", " ").removesuffix("Z")
