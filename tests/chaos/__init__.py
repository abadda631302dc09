"""Brokers as processes under faults, what their clients saw, and the judge of it.

history   what clients asked and what they were answered, as values
checker   which promises a history breaks; pure
replicas  logs of one partition on several brokers, compared batch by batch
rights    what this process may do to the system it runs on
network   a namespace for each broker, and packets dropped one way or both
workload  the clients whose history is recorded
faults    what is done to the cluster, from a seed
world     all of them together
"""
