"""The connections between voters, and whose messages are taken."""
