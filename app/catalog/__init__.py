"""Models, checkpoints, cards, servers, releases and vendors, read from data/ and checked."""
