"""The errors with which a job ends.

    JobError          one line for the user, exit status 1
    └── UsageError    an option has an invalid value; nothing was read or written; exit status 2

Every message has the option, its value and the expected value. Must not know Spark.
"""

from __future__ import annotations


class JobError(Exception):
    """The job failed. The user sees only the message."""

    status = 1


class UsageError(JobError):
    """An option has an invalid value."""

    status = 2
