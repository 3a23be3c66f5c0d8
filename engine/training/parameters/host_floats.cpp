// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/parameters/host_floats.h"

#include <cstddef>

#include "base/error.h"
#include "kernels/context/context.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {

void uploadFloats(kernels::Context& context, std::span<const float> values, const kernels::TensorView& to) {
    if (static_cast<std::int64_t>(values.size()) != to.shape.count()) {
        throw base::Internal("uploadFloats: not as many values as elements");
    }
    std::vector<std::byte> bytes(to.bytes());
    kernels::storeFloats(to.dtype, values.data(), to.shape.count(), bytes.data(), 0);
    context.upload(bytes.data(), to.data, to.bytes());
}

std::vector<float> downloadFloats(kernels::Context& context, const kernels::TensorView& from) {
    std::vector<std::byte> bytes(from.bytes());
    context.download(from.data, bytes.data(), from.bytes());
    std::vector<float> values(static_cast<std::size_t>(from.shape.count()));
    kernels::loadFloats(from.dtype, bytes.data(), 0, from.shape.count(), values.data());
    return values;
}

std::vector<float> transposedMatrix(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
    std::vector<float> out(values.size());
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
            out[static_cast<std::size_t>(column * rows + row)] =
                values[static_cast<std::size_t>(row * columns + column)];
        }
    }
    return out;
}

} // namespace vitrine::engine
