// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/objective.h"

#include "base/error.h"

namespace vitrine::engine {

TokenCounts countTokens(std::span<const TrainingBatch> batches) {
    TokenCounts out;
    for (const TrainingBatch& batch : batches) {
        out.tokens += batch.count();
        out.predicted += batch.predicted();
    }
    if (out.predicted == 0) {
        throw base::BadInput("data: no token of the batch counts for the loss; give rows with more tokens");
    }
    return out;
}

} // namespace vitrine::engine
