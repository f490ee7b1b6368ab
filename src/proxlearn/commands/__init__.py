"""Commands that need more than a few lines, each in a file; `cli` registers them."""
