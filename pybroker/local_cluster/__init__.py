"""A cluster of broker processes on this machine, for development, tests and CI.

Must not know the broker: it is a program that is started with a settings file and ended by its process id.

    layout      ports, roles, directory and settings of each node: arithmetic and files
    process     one node's process: start, readiness, pause, kill, end
    cluster     all of them, started by one program
    state_file  the processes of a directory's cluster, for several programs
"""
