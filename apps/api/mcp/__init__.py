"""MCP (section 16): one stateless endpoint for each audience, thin over the executor. It holds no rule of the gate.

`protocol` reads a message of either era, `methods` answers it, `replies` is its bytes, `views` the way of HTTP around them.
"""
