// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tensors that programs capture, as callers hand them in and get them back.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/core/tensor.h"

namespace vitrine::engine {

/// A tensor that a program captures, with its contents where they are known (constructors, files).
struct CapturedTensor {
    kernels::DType dtype = kernels::DType::None;
    kernels::Shape shape;
    std::shared_ptr<const std::vector<std::byte>> data; ///< null: not known, the user binds it
    kernels::TensorView view() const;
};

/// Contents by name: of a safetensors file, of the GUI's editors, of tests.
using CapturedTensors = std::map<std::string, CapturedTensor, std::less<>>;

} // namespace vitrine::engine
