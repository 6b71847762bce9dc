"""The models that answer, behind one small protocol. The libraries of their makers are imported in a worker only, never in the web path."""
