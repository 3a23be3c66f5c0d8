// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What kernels over packed weights are given beside the elements.

#include <cstdint>

#include "kernels/core/weight_view.h"
#include "kernels/device/abi/nf4_scales.h"

namespace vitrine::kernels {

/// The type of the weight's elements, for specialisation: that of packed elements, not of the bytes that hold them.
std::int64_t elementNumber(const WeightView& weight);

/// The scales of an NF4 weight; of another weight nothing.
abi::Nf4Scales nf4ScalesForDevice(const WeightView& weight);

} // namespace vitrine::kernels
