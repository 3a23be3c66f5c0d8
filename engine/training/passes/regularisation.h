// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changes a training step beside the loss of the next token.

namespace vitrine::engine {

struct Regularisation {
    double auxLoss = 0; ///< coefficient of the load-balancing loss, see engine/training/passes/balance_loss.h; 0: none
    double dropout = 0; ///< probability for inputs of adapters, see engine/training/passes/layer_dropout.h; 0: none
};

} // namespace vitrine::engine
