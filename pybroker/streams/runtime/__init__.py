"""Running nodes, record queues and tasks. They do no I/O and read no clock."""
