"""Membership in a group, seen from the member: one pure machine for each of the two protocols.

A machine decides about what came (`handle`), takes what was decided (`apply`), and is asked what is to be done; it
sends nothing, and time and answers are arguments. `pybroker.client.drivers` drives it; what the program itself has to
do in `poll` is a `RebalanceStep`.
"""
