"""Puts the lines of defmt into words, as far as the examples need: what `defmt-print` does for people.

    defmt.py SYMBOLS < BYTES     SYMBOLS: what `nm` says of the program

    frame   [ number of the text : 16 ][ time ][ arguments ... ]     little-endian, packed by rzCOBS, 0 at its end

The texts are the names of symbols, whose addresses are their numbers. An argument without a type of its own ({}) is the
number of another text, and what that one asks for; a text of several parts (a|b) is an enumeration, whose number comes
first.
"""

import json
import re
import sys

texts = {}
for line in open(sys.argv[1]):
    match = re.match(r"([0-9a-f]+) \w (\{.*\"tag\":.*\})$", line)
    if match:
        symbol = json.loads(match[2])
        texts[int(match[1], 16)] = (symbol["tag"], symbol["data"])
clock = next(data for tag, data in texts.values() if tag == "defmt_timestamp")


def unpack(packed):
    """Undoes rzCOBS, from the end on: a byte that tells which of seven are 0 stands after them; one from 128 on stands
    after as many as are not 0, where 0x80 | n means n + 7 and a zero."""
    left, frame = list(packed), []
    while left:
        code = left.pop()
        if code < 0x80:
            frame += [0 if code >> bit & 1 else left.pop() for bit in reversed(range(7))]
        else:
            frame += [0] * (code != 0xFF)
            frame += [left.pop() for _ in range(134 if code == 0xFF else (code & 0x7F) + 7)]
    return frame[::-1]


def number(frame, size):
    """Takes a number of the given bytes."""
    taken, frame[:size] = frame[:size], []
    return int.from_bytes(bytes(taken), "little")


def value(frame, kind):
    if kind == "bool":
        return str(number(frame, 1) != 0).lower()
    if kind:
        return str(number(frame, {"u8": 1, "u16": 2, "u32": 4, "u64": 8}[kind]))
    parts = texts[number(frame, 2)][1].split("|")
    return fill(frame, parts[number(frame, 1)] if len(parts) > 1 else parts[0])


def fill(frame, text):
    """A text with its arguments."""
    argument = r"(\{\{|\}\})|\{(?:=([a-z0-9]+))?(?::[^}]*)?\}"
    return re.sub(argument, lambda match: match[1][0] if match[1] else value(frame, match[2]), text)


for packed in filter(None, sys.stdin.buffer.read().split(b"\0")):
    frame = unpack(packed)
    tag, text = texts[number(frame, 2)]
    ms = int(fill(frame, clock))
    print(f"{ms // 1000}.{ms % 1000:03} {tag.replace('defmt_', '').upper()} {fill(frame, text)}")
