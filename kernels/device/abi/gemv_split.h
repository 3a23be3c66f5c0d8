// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/gemv.h"
#include "device/abi/tensor_map.h"

namespace vitrine::kernels::abi {

constexpr int kGemvSplitAbi = 1;

/// GemvParams for up to 64 rows, with a map of the weight in tiles of VT_COLUMNS rows.
struct GemvSplitParams : GemvParams {
    TensorMap weightMap;
};

} // namespace vitrine::kernels::abi
