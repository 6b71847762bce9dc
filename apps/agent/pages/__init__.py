"""The pages of the chat (SPEC 20): drawn by the server, kept fresh by fragments of the same templates."""
