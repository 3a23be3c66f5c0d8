// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Cuts an op's scratch into aligned pieces. The same code sizes and carves: sizing starts at a made-up address.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/tensor.h"
#include "kernels/memory/resource.h"

namespace vitrine::kernels {

class ScratchLayout {
public:
    /// For sizing: the views are never read, but they must not look absent.
    ScratchLayout() : ScratchLayout(reinterpret_cast<void*>(kMemoryAlignment)) {} // NOLINT(performance-no-int-to-ptr)
    explicit ScratchLayout(void* base) : base_(static_cast<std::byte*>(base)) {}

    TensorView take(DType dtype, const Shape& shape) {
        TensorView view{base_ + used_, dtype, shape, 0};
        used_ += alignedBytes(view.bytes());
        return view;
    }
    TensorView takeBytes(std::uint64_t bytes) { return take(DType::U8, Shape{static_cast<std::int64_t>(bytes)}); }
    std::uint64_t bytes() const { return used_; }

private:
    std::byte* base_;
    std::uint64_t used_ = 0;
};

} // namespace vitrine::kernels
