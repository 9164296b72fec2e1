"""What the templates show, made from what the core answers: numbers and codes, no words."""
