// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/program.h"

namespace vitrine::kernels::abi {

constexpr int kBlockCountsAbi = 1;

struct BlockCountsParams {
    const int* places; ///< (batch, head, block row, block column) of each block
    int* counts;       ///< its allowed elements
    int queries, keys;
    int queryBlock, keyBlock;
    int exact; ///< 0: of a block that is neither empty nor full any number between
    ProgramCaptures captures;
};

} // namespace vitrine::kernels::abi
