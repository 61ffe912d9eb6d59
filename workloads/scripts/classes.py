# SPDX-License-Identifier: MIT
"""classes.py N - N rounds of an event simulation: classes, generators, heaps, exceptions."""
import heapq
import sys
from functools import reduce


class Random:
    def __init__(self, seed):
        self.state = seed

    def next(self, limit):
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.state >> 8) % limit


class Refused(Exception):
    pass


class Account:
    count = 0

    def __init__(self, owner, balance):
        self.owner = owner
        self._balance = balance
        type(self).count += 1

    @property
    def balance(self):
        return self._balance

    def change(self, amount):
        if self._balance + amount < self.limit():
            raise Refused(self.owner)
        self._balance += amount

    def limit(self):
        return 0

    def __lt__(self, other):
        return (self.balance, self.owner) < (other.balance, other.owner)


class Credit(Account):
    def limit(self):
        return -500

    def change(self, amount):
        super().change(amount if amount > 0 else amount - 1)


def events(rng, accounts, count):
    for number in range(count):
        source, target = rng.next(len(accounts)), rng.next(len(accounts))
        yield number + rng.next(50), number, accounts[source], accounts[target], rng.next(300)


def ordered(stream):
    heap = []
    for event in stream:
        heapq.heappush(heap, event[:2] + (event[2:],))
        if len(heap) > 64:
            yield heapq.heappop(heap)
    while heap:
        yield heapq.heappop(heap)


def simulate(turn):
    rng = Random(turn + 1)
    accounts = [(Credit if i % 3 else Account)(f"owner{i}", rng.next(2000)) for i in range(40)]
    refused = 0
    for _, _, (source, target, amount) in ordered(events(rng, accounts, 1000)):
        try:
            source.change(-amount)
            target.change(amount)
        except Refused as error:
            refused += len(error.args[0])
    best = max(accounts)
    total = reduce(lambda a, b: a ^ b, (a.balance & 0xFFFF for a in accounts), refused)
    return total, best.owner, sum(a.balance for a in accounts)


def main():
    total = 0
    last = None
    for turn in range(int(sys.argv[1])):
        last = simulate(turn)
        total = (total * 31 + last[0]) & 0xFFFFFFFF
    print(total, last, Account.count, Credit.count)


main()
