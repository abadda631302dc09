"""The connections between voters, and the check of senders."""
