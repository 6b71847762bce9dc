"""The pages of people: one module for each topic."""
