"""What F is: data, losses, penalties and their mathematics."""
