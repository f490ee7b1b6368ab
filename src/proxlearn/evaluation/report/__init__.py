"""Results for people: tables and plots. Imports rich and matplotlib, which nothing else does."""
