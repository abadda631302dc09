"""The command line: `pybroker start`, `pybroker stop`, `pybroker topics`.

Owns options, output formats and exit statuses, which are Kafka's where Kafka has them. Must not implement the commands:
the node and the client do. Requests do not pass through here.

    main    finds the command and imports only it
    errors  an error is one line on stderr and a nonzero exit status
    start   runs a broker until a signal stops it
    stop    signals a broker to stop, and waits for its end
    topics  kafka-topics
"""
