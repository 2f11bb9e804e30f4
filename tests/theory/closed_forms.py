"""Mean time in the system (queue and service), in the unit of the services and gaps given; and what finite
systems lose and carry.

L. Kleinrock, *Queueing Systems*, vol. 1: Theory, Wiley 1975; M. Harchol-Balter, *Performance Modeling and
Design of Computer Systems*, Cambridge 2013.
"""

from __future__ import annotations

from collections.abc import Sequence


def mm1(gap: float, service: float) -> float:
    """M/M/1: 1 / (mu - lambda). Kleinrock, section 3.2."""
    return 1 / (1 / service - 1 / gap)


def mg1(gap: float, service: float, cv: float) -> float:
    """M/G/1: E[S] + rho E[S] (1 + cv**2) / (2 (1 - rho)).

    F. Pollaczek, 1930; A. Khinchine, 1932; Kleinrock, section 5.6.
    """
    load = service / gap
    return service + load * service * (1 + cv**2) / (2 * (1 - load))


def md1(gap: float, service: float) -> float:
    """M/D/1: Pollaczek and Khinchine's formula for a service that never varies."""
    return mg1(gap, service, 0)


def tandem(gap: float, services: Sequence[float]) -> float:
    """Queues with exponential service in a row: the sum of their M/M/1 times.

    P. J. Burke, *The output of a queuing system*, Operations Research 4, 1956: what leaves an M/M/1 queue is
    a Poisson process again; J. R. Jackson, *Networks of waiting lines*, Operations Research 5, 1957.
    """
    return sum(mm1(gap, service) for service in services)


def split(gap: float, service: float, shares: Sequence[float]) -> float:
    """Parallel M/M/1 queues, each weighted by its share of the tuples.

    A Poisson stream split by independent choices is Poisson in each part (Harchol-Balter, section 11.6).
    """
    return sum(share * mm1(gap / share, service) for share in shares)


def full(load: float, most: int) -> float:
    """M/M/1/K: part of the time in which all ``most`` places, with the one in service, are taken.

    Kleinrock, section 3.6.
    """
    weights = [load**k for k in range(most + 1)]
    return weights[-1] / sum(weights)


def two_in_series(first: float, second: float, places: int) -> float:
    """Rate of two servers with exponential service, of which the first always has work, and is blocked after
    service while ``places`` wait for the second.

    What the second has to do, with the one that blocks the first, is an M/M/1/K queue of K = places + 2. H.
    G. Perros, *Queueing Networks with Blocking*, Oxford 1994, section 2.
    """
    idle = full(first / second, places + 2)  # what it does not have is an M/M/1/K queue the other way round
    return (1 - idle) / second


def erlang_b(servers: int, offered: float) -> float:
    """M/G/c/c: the part that finds all ``servers`` busy, by the recursion over their number.

    A. K. Erlang, 1917; Kleinrock, section 3.5. Of the services only the mean matters (B. A. Sevastyanov, *An
    ergodic theorem for Markov processes and its application to telephone systems with refusals*, Theory of
    Probability and its Applications 2, 1957).
    """
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = offered * blocked / (n + offered * blocked)
    return blocked
