"""The OpenAPI 3.1 document of what a caller may call, and the page that shows it (RE-2)."""
