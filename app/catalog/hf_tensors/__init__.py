"""Turns a Hugging Face config.json into the tensors a model is made of."""

from __future__ import annotations

from app.catalog.hf_tensors.registry import architecture_of, family_of, tensor_groups

__all__ = ["architecture_of", "family_of", "tensor_groups"]
