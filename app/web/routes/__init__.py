"""One module per page or API family."""
