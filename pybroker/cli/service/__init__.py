"""A broker as a service: lines for the log, life without a terminal, and what the service manager is notified of.

log_output     the format of log lines, and their destination
rolling_file   a file that is rolled by size
detached       a process of its own, without a terminal
pid_file       the file with the process id
notifier       the protocol of systemd's sd_notify
deadline       ends the process when a stop takes too long
"""
