"""A broker as a service: lines for the log, life without a terminal, and what the service manager is notified of.

log_output     the format of log lines, and where they are written
rolling_file   a file that is rolled by size
detached       a process of its own, without a terminal
pid_file       the file with the process's id
notifier       the protocol of systemd's sd_notify
deadline       a stop that takes too long ends hard
"""
