// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/cuda_tensor_map.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "kernels/cuda/jit/cuda_driver.h"

namespace vitrine::kernels {

void encodeTensorMap(const TensorMapShape& shape, void* map) {
    const CudaDriver* driver = CudaDriver::find();
    if (driver == nullptr) {
        throw base::Unsupported(CudaDriver::whyMissing());
    }
    const std::uint64_t element = bytesOf(shape.dtype, 1);
    const bool isBytes = element == 1;
    std::array<cuuint64_t, 5> extents{};
    std::array<cuuint64_t, 5> strides{};
    std::array<cuuint32_t, 5> box{};
    std::array<cuuint32_t, 5> steps{};
    for (std::size_t i = 0; i < shape.extents.size(); ++i) {
        extents[i] = shape.extents[i];
        box[i] = shape.box[i];
        steps[i] = 1;
    }
    for (std::size_t i = 0; i < shape.strides.size(); ++i) {
        strides[i] = shape.strides[i] * element;
    }
    CUtensorMap encoded;
    const CUtensorMapDataType type = isBytes                     ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                     : shape.dtype == DType::F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                                 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    const CUresult code = driver->cuTensorMapEncodeTiled(
        &encoded, type, static_cast<cuuint32_t>(shape.extents.size()), const_cast<void*>(shape.data), extents.data(),
        strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
        isBytes ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code != CUDA_SUCCESS) {
        throw base::Unsupported("tensor map: the driver refuses this tensor's shape: " + driver->describe(code));
    }
    static_assert(sizeof(encoded) == 128, "kernels take maps of 128 bytes");
    std::memcpy(map, &encoded, sizeof(encoded));
}

} // namespace vitrine::kernels
