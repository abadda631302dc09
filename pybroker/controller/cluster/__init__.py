"""controller/cluster"""
