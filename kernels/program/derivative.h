// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reverse-mode derivative of a score program: new programs over the same inputs and Upstream (the gradient of the loss
// by the program's result). Subgradients as PyTorch's: abs at 0 gives 0, min and max split ties in halves, floor, ceil,
// round and integer operations give 0, where() passes to the branch that was taken.

#include "kernels/program/program.h"

namespace vitrine::kernels {

/// One program with several results, with the captures of the score program in their order: `program.result` is the
/// gradient with respect to the score before the program (0 when the program ignores it).
struct ScoreGradient {
    Program program;
    struct CaptureGradient {
        std::int32_t capture = -1;         ///< of program.captures
        std::vector<std::int32_t> indices; ///< nodes: where the gradient is added (empty: a Scalar)
        std::int32_t value = -1;           ///< node: what is added for this element
    };
    std::vector<CaptureGradient> captures; ///< one for each Load or Scalar of a differentiable capture
    bool linear = false;                   ///< d out / d score does not depend on the score: it need not be kept
    bool identity = false;                 ///< d out / d score is 1
};

/// Throws BadInput when `score` is a mask.
ScoreGradient derivativeOf(const Program& score);

} // namespace vitrine::kernels
