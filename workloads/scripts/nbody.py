# SPDX-License-Identifier: MIT
"""nbody.py N - N steps of five bodies under gravity: float arithmetic in nested loops."""
import sys


def make_bodies():
    bodies = []
    for i in range(5):
        bodies.append([
            [i * 1.5 - 2.0, (i * 7 % 5) * 0.8, (i * 3 % 4) * 0.5 - 1.0],
            [(i % 3 - 1) * 0.1, (i % 2) * 0.2 - 0.1, 0.05 * i],
            0.5 + 0.3 * i,
        ])
    return bodies


def step(bodies, dt):
    for i in range(len(bodies)):
        pos, vel, mass = bodies[i]
        for j in range(i + 1, len(bodies)):
            pos2, vel2, mass2 = bodies[j]
            dx = pos[0] - pos2[0]
            dy = pos[1] - pos2[1]
            dz = pos[2] - pos2[2]
            dist2 = dx * dx + dy * dy + dz * dz + 0.01
            mag = dt / (dist2 * dist2 ** 0.5)
            vel[0] -= dx * mass2 * mag
            vel[1] -= dy * mass2 * mag
            vel[2] -= dz * mass2 * mag
            vel2[0] += dx * mass * mag
            vel2[1] += dy * mass * mag
            vel2[2] += dz * mass * mag
    for pos, vel, _ in bodies:
        pos[0] += dt * vel[0]
        pos[1] += dt * vel[1]
        pos[2] += dt * vel[2]


def main():
    bodies = make_bodies()
    for _ in range(int(sys.argv[1])):
        step(bodies, 0.001)
    for pos, vel, mass in bodies:
        print(" ".join(repr(v) for v in pos + vel + [mass]))


main()
