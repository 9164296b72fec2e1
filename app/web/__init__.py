"""Pages, fragments and the JSON API: the only room that knows HTTP."""
