"""The DSL: streams and tables, and the graph that their operations build."""
