"""Generates Nexmark's events: of each 50, one person, three auctions and 46 bids, as Nexmark's own generator does.

The same seed, rate and range of numbers always give the same events. Half of the bids are on the newest hundredth
auction, three quarters come from the newest hundredth person. Event times advance with the rate. An event can be up to
a second older than the one before, which is less than the watermark's delay of four seconds.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

START = datetime(2024, 1, 1, tzinfo=UTC)
RATE = 10_000
"""Events in a second of event time."""

SIDE_ROWS = 10_000
PERSONS, AUCTIONS, CYCLE = 1, 3, 50
FIRST_ID = 1_000
HOT = 100
IN_FLIGHT, ACTIVE = 100, 1_000
CATEGORIES = 10 + np.arange(5)
CHANNELS = np.array(["Google", "Facebook", "Baidu", "Apple", *(f"channel-{number}" for number in range(10_000))])
HOT_CHANNELS = 4
STATES = np.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
CITIES = np.array(["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle"])
FIRST_NAMES = np.array(["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"])
LAST_NAMES = np.array(["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"])
TEXTS = np.random.default_rng(0).choice(list("abcdefghijklmnopqrstuvwxyz "), (1_000, 500)).view("<U500").ravel()
"""Texts of 500 letters, from which descriptions and `extra` are cut."""


def events(first: int, count: int, seed: int, rate: int = RATE) -> pa.Table:
    """Returns the events with the numbers from `first` on: columns `event_type`, `date_time`, `person`, `auction` and
    `bid`, of which one is not null.
    """
    random = np.random.default_rng([seed, first])
    number = np.arange(first, first + count, dtype=np.int64)
    place = number % CYCLE
    kind = np.where(place < PERSONS, 0, np.where(place < PERSONS + AUCTIONS, 1, 2)).astype(np.int32)
    last_person = FIRST_ID + number // CYCLE
    last_auction = FIRST_ID + number // CYCLE * AUCTIONS + np.clip(place - PERSONS, 0, AUCTIONS - 1)
    micros = int(START.timestamp()) * 1_000_000 + number * 1_000_000 // rate
    late = random.integers(0, 1_000_000, count) * (random.random(count) < 0.1)
    time = np.maximum(micros - late, int(START.timestamp()) * 1_000_000)
    structs = {
        "person": _persons(random, last_person),
        "auction": _auctions(random, last_auction, last_person, time),
        "bid": _bids(random, last_auction, last_person),
    }
    masked = [
        pa.StructArray.from_arrays(list(columns.values()), list(columns), mask=pa.array(kind != index))
        for index, columns in enumerate(structs.values())
    ]
    return pa.table([pa.array(kind), _times(time), *masked], ["event_type", "date_time", *structs])


def _persons(random: np.random.Generator, last_person: Numbers) -> dict[str, pa.Array]:
    count = len(last_person)
    name = np.char.add(np.char.add(random.choice(FIRST_NAMES, count), " "), random.choice(LAST_NAMES, count))
    return {
        "id": pa.array(last_person),
        "name": pa.array(name),
        "email_address": pa.array(np.char.add(np.char.replace(name, " ", "@"), ".com")),
        "credit_card": pa.array(random.integers(10**15, 10**16, count).astype(str)),
        "city": pa.array(random.choice(CITIES, count)),
        "state": pa.array(random.choice(STATES, count)),
        "extra": _texts(random, count, 100),
    }


def _auctions(
    random: np.random.Generator, last_auction: Numbers, last_person: Numbers, time: Numbers
) -> dict[str, pa.Array]:
    count = len(last_auction)
    price = _prices(random, count)
    return {
        "id": pa.array(last_auction),
        "item_name": _texts(random, count, 20),
        "description": _texts(random, count, 100),
        "initial_bid": pa.array(price),
        "reserve": pa.array(price + _prices(random, count)),
        "expires": _times(time + random.integers(1, 4_000_000, count)),
        "seller": pa.array(_people(random, last_person, hot=0.75, place=0)),
        "category": pa.array(random.choice(CATEGORIES, count)),
        "extra": _texts(random, count, 250),
    }


def _bids(random: np.random.Generator, last_auction: Numbers, last_person: Numbers) -> dict[str, pa.Array]:
    count = len(last_auction)
    recent = np.maximum(last_auction - random.integers(0, IN_FLIGHT + 1, count), FIRST_ID)
    hot = random.random(count) < 0.5
    channel = np.where(
        random.random(count) < 0.5,
        random.integers(0, HOT_CHANNELS, count),
        random.integers(HOT_CHANNELS, len(CHANNELS), count),
    )
    url = np.char.add(np.char.add("https://www.nexmark.com/", (channel % 997).astype(str)), "/item/page.htm?query=1")
    with_id = random.random(count) < 0.9
    ids = np.where(with_id, np.char.add("&channel_id=", channel.astype(str)), "")
    return {
        "auction": pa.array(np.where(hot, np.maximum(last_auction // HOT * HOT, FIRST_ID), recent)),
        "bidder": pa.array(_people(random, last_person, hot=0.75, place=1)),
        "price": pa.array(_prices(random, count)),
        "channel": pa.array(CHANNELS[channel]),
        "url": pa.array(np.char.add(url, ids)),
        "extra": _texts(random, count, 50),
    }


def _people(random: np.random.Generator, last: Numbers, hot: float, place: int) -> Numbers:
    """Returns ids of persons: with the chance `hot` the newest hundredth one and `place`, else one of the last."""
    recent = np.maximum(last - random.integers(0, ACTIVE, len(last)), FIRST_ID)
    return np.where(random.random(len(last)) < hot, np.minimum(last // HOT * HOT + place, last), recent)


def _prices(random: np.random.Generator, count: int) -> Numbers:
    return np.rint(10 ** (random.random(count) * 6) * 100).astype(np.int64)


def _texts(random: np.random.Generator, count: int, length: int) -> pa.Array:
    return pa.array(TEXTS.astype(f"<U{length}")).take(pa.array(random.integers(0, len(TEXTS), count)))


def _times(micros: Numbers) -> pa.Array:
    return pa.array(micros).cast(pa.timestamp("us", tz="UTC"))


def write_events(folder: Path, count: int, files: int, seed: int, rate: int = RATE) -> None:
    """Writes `count` events to Parquet files. The last file has three events of the next day, which close all windows.

    A query reads two files in a batch, so that two cores share a batch, and the last file alone.
    """
    folder.mkdir(parents=True)
    size = count // files
    for number in range(files):
        _write(folder, number, events(number * size, size, seed, rate))
    closing = events(rate * 86_400 // CYCLE * CYCLE, CYCLE, seed, rate)
    _write(folder, files, closing.take([0, 1, CYCLE - 1]))


def _write(folder: Path, number: int, rows: pa.Table) -> None:
    """Writes a file. Its time is in the order of the files, in which Spark reads them."""
    path = folder / f"{number:05}.parquet"
    pq.write_table(rows, path)
    at = START.timestamp() + number * 10
    os.utime(path, (at, at))


def write_side_input(folder: Path) -> None:
    """Writes the static table of q13."""
    folder.mkdir(parents=True)
    keys = pa.array(range(SIDE_ROWS), pa.int64())
    values = pa.array([f"value {key}" for key in range(SIDE_ROWS)])
    pq.write_table(pa.table([keys, values], ["key", "value"]), folder / "0.parquet")
