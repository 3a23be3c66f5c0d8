// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What kernels that take weights of every format are given and specialised by.

#include <cstdint>

#include "kernels/core/weight_view.h"
#include "kernels/device/abi/packed_weight.h"

namespace vitrine::kernels {

/// The variable "w_format".
std::int64_t formatNumber(const WeightView& weight);

/// The variable "w_dtype": the type of a dense weight, 0 of a packed one.
std::int64_t denseNumber(const WeightView& weight);

/// The fields of a packed weight; of a dense one nothing.
abi::PackedWeight packedForDevice(const WeightView& weight);

} // namespace vitrine::kernels
