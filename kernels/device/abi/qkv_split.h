// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/qkv_project.h"
#include "device/abi/tensor_map.h"

namespace vitrine::kernels::abi {

constexpr int kQkvSplitAbi = 1;

/// QkvProjectParams for up to 64 tokens, with maps of the three weights in tiles of 32 rows (64 where these are a
/// head).
struct QkvSplitParams : QkvProjectParams {
    TensorMap weightMap[3];
};

} // namespace vitrine::kernels::abi
