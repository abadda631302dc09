"""controller/quorum"""
