"""The command line: `pybroker start`, `pybroker stop`, `pybroker topics`.

Owns options, output formats and exit statuses, which are Kafka's where Kafka has them. Must not contain what the
commands do: that is the node's and the client's. No request comes by here.

    main    finds the command and imports it, and no other
    errors  an error is one line on stderr and a status that is not 0
    start   runs a broker until a signal stops it
    stop    signals a broker to stop, and waits until it has
    topics  kafka-topics
"""
