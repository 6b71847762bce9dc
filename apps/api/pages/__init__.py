"""The gate's pages for people, outside the admin site."""
