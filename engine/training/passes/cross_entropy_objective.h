// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The loss of next-token prediction: the mean over the tokens of a step that count.

#include "engine/training/passes/objective.h"

namespace vitrine::engine {

class CrossEntropyObjective final : public Objective {
public:
    explicit CrossEntropyObjective(kernels::Context& context);

    void beginStep(std::span<const TrainingBatch> batches) override;
    void beginBatch(const OpRunner& runner, std::int64_t index) override;
    void run(const OpRunner& runner, const LogitsChunk& chunk) override;
    double loss() override;

private:
    kernels::Context& context_;
    kernels::Tensor sum_; ///< (1) F64
    double predicted_ = 1;
};

} // namespace vitrine::engine
