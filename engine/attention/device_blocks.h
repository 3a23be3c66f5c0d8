// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Blocks of a mask looked into on a GPU: for masks of which interval analysis decides few blocks.

#include <memory>

#include "kernels/context/context.h"
#include "kernels/ops/attention/flex_attention.h"
#include "kernels/program/block_mask.h"

namespace vitrine::engine {

/// Null where it is no help: not on CUDA, or the program's numbers would not be the CPU's. `mask`: captures where the
/// context's kernels read them; context and program outlive the evaluator, which belongs to the context's thread.
std::unique_ptr<kernels::BlockEvaluator> deviceBlocks(kernels::Context& context, const kernels::BoundProgram& mask,
                                                      const kernels::BlockMaskShape& shape);

} // namespace vitrine::engine
