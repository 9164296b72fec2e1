"""Storage schemes: how many bytes a matrix takes, in the files and in vLLM."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.units import ceil_div

DTYPE_BYTES = {
    "bfloat16": 2,
    "float16": 2,
    "float32": 4,
    "int32": 4,
    "uint8": 1,
    "float8_e4m3fn": 1,
}
UNQUANTIZED = "none"

_QUANTIZATION = "vllm/model_executor/layers/quantization/"
_COMPRESSED = f"{_QUANTIZATION}compressed_tensors/schemes/"


@dataclass(frozen=True, slots=True)
class StorageScheme:
    """How one linear layer [out_features, in_features] is stored.

    weight_bits          bits of one element
    block_rows           output rows that share a scale; 0: all of them
    block_columns        input columns that share a scale; 0: all of them
    scale_bytes          bytes of one scale in the files; 0: no scale of this kind
    loaded_scale_bytes   bytes of one scale as vLLM's parameter
    zero_point_bits      bits of the zero point beside each scale
    matrix_bytes         scalars of one matrix (global and input scales, packed shape)
    input_index_bytes    bytes in the files for each input column (GPTQ's g_idx)
    drops_zero_points    vLLM keeps no zero points once loaded (symmetric GPTQ)
    source               where the layout is described
    """

    weight_bits: int
    source: str
    block_rows: int = 1
    block_columns: int = 0
    scale_bytes: int = 0
    loaded_scale_bytes: int = 0
    zero_point_bits: int = 0
    matrix_bytes: int = 0
    input_index_bytes: int = 0
    drops_zero_points: bool = False

    def stored_bytes(self, out_features: int, in_features: int) -> int:
        """Bytes of one matrix in the checkpoint's files, headers not counted."""
        scales = self._scales(out_features, in_features)
        return (
            self.weight_bytes(out_features, in_features)
            + scales * self.scale_bytes
            + ceil_div(scales * self.zero_point_bits, 8)
            + in_features * self.input_index_bytes
            + self.matrix_bytes
        )

    def weight_bytes(self, out_features: int, in_features: int) -> int:
        """Bytes of the elements alone."""
        return ceil_div(out_features * in_features * self.weight_bits, 8)

    def loaded_extra_bytes(self, out_features: int, in_features: int) -> int:
        """Bytes of scales, zero points and scalars beside the elements in vLLM's parameters."""
        scales = self._scales(out_features, in_features)
        return (
            scales * self.loaded_scale_bytes
            + ceil_div(scales * self.zero_point_bits, 8)
            + self.matrix_bytes
        )

    def kept_extra_bytes(self, out_features: int, in_features: int) -> int:
        """Bytes of the same once vLLM has processed the loaded weights."""
        if self.drops_zero_points:
            scales = self._scales(out_features, in_features)
            return scales * self.loaded_scale_bytes + self.matrix_bytes
        return self.loaded_extra_bytes(out_features, in_features)

    def _scales(self, out_features: int, in_features: int) -> int:
        if not self.scale_bytes:
            return 0
        rows = ceil_div(out_features, self.block_rows or out_features)
        return rows * ceil_div(in_features, self.block_columns or in_features)


_FP8_BLOCK = StorageScheme(
    8,
    source=f"{_QUANTIZATION}fp8.py (0.32.0): weight_scale_inv per 128 x 128",
    block_rows=128,
    block_columns=128,
    scale_bytes=2,
    loaded_scale_bytes=4,
)
_AWQ = StorageScheme(
    4,
    source=f"{_QUANTIZATION}auto_awq.py (0.32.0): qweight, qzeros, scales",
    block_columns=128,
    scale_bytes=2,
    loaded_scale_bytes=2,
    zero_point_bits=4,
)
_GPTQ = replace(
    _AWQ,
    source=f"{_QUANTIZATION}auto_gptq.py, kernels/linear/mixed_precision/"
    "marlin.py (0.32.0): as AWQ; g_idx is in the files only",
    input_index_bytes=4,
    drops_zero_points=True,
)
_W4A16 = StorageScheme(
    4,
    source=f"{_COMPRESSED}compressed_tensors_wNa16.py (0.32.0): "
    "weight_packed, weight_scale, weight_shape",
    block_columns=128,
    scale_bytes=2,
    loaded_scale_bytes=2,
    matrix_bytes=16,
)

STORAGE_SCHEMES: dict[str, StorageScheme] = {
    "fp8_tensor": StorageScheme(
        8,
        source=f"{_QUANTIZATION}modelopt.py (0.32.0): weight_scale, input_scale",
        matrix_bytes=8,
    ),
    "fp8_channel": StorageScheme(
        8,
        source=f"{_COMPRESSED}compressed_tensors_w8a8_fp8.py (0.32.0): "
        "weight_scale per output row, BF16 in the files, FP32 as parameter",
        scale_bytes=2,
        loaded_scale_bytes=4,
    ),
    "fp8_block": _FP8_BLOCK,
    "fp8_block_f32": replace(_FP8_BLOCK, scale_bytes=4),
    "fp8_block_ue8m0": replace(_FP8_BLOCK, scale_bytes=1, loaded_scale_bytes=1),
    "nvfp4": StorageScheme(
        4,
        source=f"{_QUANTIZATION}modelopt.py (0.32.0): E4M3 scale per 16, two FP32 scalars",
        block_columns=16,
        scale_bytes=1,
        loaded_scale_bytes=1,
        matrix_bytes=8,
    ),
    "mxfp4": StorageScheme(
        4,
        source="OCP microscaling formats 1.0: E8M0 scale per 32 elements",
        block_columns=32,
        scale_bytes=1,
        loaded_scale_bytes=1,
    ),
    "mxfp8": StorageScheme(
        8,
        source="OCP microscaling formats 1.0: E8M0 scale per 32 elements",
        block_columns=32,
        scale_bytes=1,
        loaded_scale_bytes=1,
    ),
    "int8_channel": StorageScheme(
        8,
        source=f"{_COMPRESSED}compressed_tensors_w8a8_int8.py (0.32.0): "
        "weight_scale per output row",
        scale_bytes=2,
        loaded_scale_bytes=4,
    ),
    "w8a16": replace(_W4A16, weight_bits=8, block_columns=0),
    "awq": _AWQ,
    "awq_g64": replace(_AWQ, block_columns=64),
    "awq_g32": replace(_AWQ, block_columns=32),
    "awq_channel": replace(_AWQ, block_columns=0),
    "gptq": _GPTQ,
    "gptq_g64": replace(_GPTQ, block_columns=64),
    "gptq_g32": replace(_GPTQ, block_columns=32),
    "gptq_channel": replace(_GPTQ, block_columns=0),
    "gptq_int8": replace(_GPTQ, weight_bits=8, zero_point_bits=8),
    "w4a16": _W4A16,
    "w4a16_g64": replace(_W4A16, block_columns=64),
    "w4a16_g32": replace(_W4A16, block_columns=32),
    "w4a16_channel": replace(_W4A16, block_columns=0),
    "w4a16_zp": replace(_W4A16, zero_point_bits=4),
    "w4a16_zp_g64": replace(_W4A16, zero_point_bits=4, block_columns=64),
    "w4a16_zp_g32": replace(_W4A16, zero_point_bits=4, block_columns=32),
    "w4a16_zp_channel": replace(_W4A16, zero_point_bits=4, block_columns=0),
    "bnb_nf4": StorageScheme(
        4,
        source=f"{_QUANTIZATION}bitsandbytes.py (0.32.0): absmax per 64, "
        "one byte in double-quantised files, FP32 once loaded",
        block_columns=64,
        scale_bytes=1,
        loaded_scale_bytes=4,
    ),
}


def unquantized(dtype: str) -> StorageScheme:
    """Plain storage in a dtype: DTYPE_BYTES bytes an element, no scales."""
    return StorageScheme(8 * DTYPE_BYTES[dtype], source="one element after the other")
