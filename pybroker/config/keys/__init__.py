"""The keys of a node, declared by subject."""
