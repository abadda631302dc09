"""protocol/messages"""
