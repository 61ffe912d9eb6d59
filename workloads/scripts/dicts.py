# SPDX-License-Identifier: MIT
"""dicts.py FILE N - N rounds of counting, matching, formatting, JSON and sorting on a log."""
import json
import re
import sys
from collections import Counter, defaultdict

LINE = re.compile(
    r"(?P<time>\S+) (?P<host>\w+) (?P<service>\w+)\[(?P<pid>\d+)\]: (?P<level>\w+) "
    r"GET (?P<path>\S+) from (?P<ip>[\d.]+) took (?P<ms>[\d.]+) ms, (?P<bytes>\d+) bytes: (.*)")


def parse(lines):
    for line in lines:
        match = LINE.match(line)
        if match:
            yield match.groupdict()


def summarise(rows):
    levels = Counter()
    hosts = defaultdict(lambda: {"count": 0, "bytes": 0, "slow": []})
    paths = {}
    for row in rows:
        levels[row["level"]] += 1
        host = hosts[row["host"]]
        host["count"] += 1
        host["bytes"] += int(row["bytes"])
        if float(row["ms"]) > 700.0:
            host["slow"].append(row["path"].split("?")[0].replace("/", "."))
        key = "".join(sorted(set(row["path"].lower())))
        paths.setdefault(key, []).append(row["ip"])
    return {
        "levels": dict(levels),
        "hosts": {k: {**v, "slow": sorted(set(v["slow"]))[:5]} for k, v in hosts.items()},
        "paths": sorted((len(v), k, min(v)) for k, v in paths.items())[-5:],
    }


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        lines = file.read().splitlines()
    text = ""
    for turn in range(int(sys.argv[2])):
        text = json.dumps(summarise(parse(lines[turn:])), sort_keys=True)
        back = json.loads(text)
        assert json.dumps(back, sort_keys=True) == text
    print(text)
    print(" ".join(f"{w:>8.4}" for w in sorted(set(re.findall(r"\b[a-z]{4,}\b", text)))[:40]))


main()
