"""A cluster of broker processes on this machine: for development, tests and CI.

Must not know what a broker does; it is a program that is started on a file of settings and ended by its process id.

    layout      who has which ports, roles, directory and settings: arithmetic and files
    process     one node's process: started, ready, paused, killed, ended
    cluster     all of them, started by one program
    state_file  which processes run a directory's cluster, for several programs
"""
