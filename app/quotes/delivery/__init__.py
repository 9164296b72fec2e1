"""How news of a quote reaches people and programs: one module per way, one worker for all."""
