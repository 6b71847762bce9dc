"""A project's app with the tools that the official suite's scenarios of tasks ask for."""
