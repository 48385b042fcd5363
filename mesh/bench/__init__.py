"""`amqpmesh bench`: what does a message, a link, a connection cost a router or broker?"""
