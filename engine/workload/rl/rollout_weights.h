// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What answers are sampled with: the weights that train, in the numbers that the option rollout asks for. Nothing is
// copied where training has them packed already.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/workload/finetune/finetune_run.h"

namespace vitrine::engine {

class RolloutWeights {
public:
    /// Throws BadInput "rollout: what" for numbers that these weights cannot have. The arguments outlive it.
    RolloutWeights(const Run& run, FinetuneModel& model);
    ~RolloutWeights();
    RolloutWeights(const RolloutWeights&) = delete; // the model has views of its copies
    RolloutWeights& operator=(const RolloutWeights&) = delete;

    /// The model computes with them from now on. Packs weights where training has them dense. Due before each rollout,
    /// once the trained values are complete (Trainer::prepare).
    void attach();
    /// The model computes as training needs it again; copies that were only for rollouts are gone.
    void detach();
    /// "int4", "bf16": what sampled.
    const std::string& format() const { return format_; }

private:
    FinetuneModel& model_;
    std::string format_;
    std::optional<WeightPacking> packing_; ///< of copies that only rollouts need
    std::unique_ptr<PackedCopies> copies_; ///< null while training goes on, and without packing_
    bool usesTraining_ = false;            ///< the copies of training serve rollouts
    bool showsMasters_ = false;            ///< rollouts are of the masters, which training computes with only packed
    bool shown_ = false;                   ///< the model has the masters' values now
};

} // namespace vitrine::engine
