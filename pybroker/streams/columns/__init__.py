"""Column expressions: operations on the fields of values that run record by record or on Arrow batches."""
