from __future__ import annotations

from pybroker.cli.command_tree import Option, read_commands


def test_a_command_is_read_with_options_subcommands_and_documents() -> None:
    topics, config = read_commands({"topics": "of topics", "config": "of settings"})
    assert (topics.usage, topics.summary) == ("pybroker topics [options]", "of topics")
    assert Option(("--topic-id",), "ID", "the id of the topic to describe", False) in topics.options
    assert Option(("--bootstrap-server",), "HOST:PORT", "brokers to connect to", True) in topics.options
    limit = next(one for one in topics.options if one.spellings == ("--partition-size-limit-per-response",))
    assert limit.words.endswith("(2000)")
    assert topics.documents.keys() == {"--list", "--describe"}
    assert [one.name for one in config.subcommands] == ["config print", "config validate"]
    assert (
        Option(("-c", "--config"), "FILE", "a server.properties in Kafka's format", False)
        in config.subcommands[0].options
    )
