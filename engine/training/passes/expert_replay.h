// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Experts that a batch gives (TrainingBatch::experts) in place of those that the trainer's routers would choose: on the
// device, layer by layer, and how often the routers would have chosen others.

#include <cstdint>
#include <vector>

#include "engine/model/model.h"
#include "engine/model/op_runner.h"
#include "engine/training/data/training_batch.h"

namespace vitrine::engine {

/// Of one pass.
class ExpertRows {
public:
    /// Uploads what the batch gives; does nothing where that is nothing. Throws BadInput "experts: ..." for a model
    /// without experts, another number of layers or of experts of a token, ids that are none of the model's experts or
    /// stand twice in a row, and ids that are not as many as the tokens need.
    ExpertRows(const OpRunner& runner, const Model& model, const TrainingBatch& batch);

    /// (tokens, k) I32 as kernels::RouterTopK::given; empty: the layer's router chooses.
    kernels::TensorView of(std::size_t layer) const;
    /// Ids that are given, of all layers; 0 on Meta.
    std::int64_t count() const { return count_; }

private:
    std::vector<std::int64_t> places_; ///< of each layer among those with experts, or -1; empty: nothing is given
    kernels::Tensor ids_;              ///< (layers with experts, tokens, k) I32
    std::int64_t count_ = 0;
};

/// Counts given experts that the routers would not have chosen, over passes. Belongs to the context's thread.
class ExpertDisagreement {
public:
    explicit ExpertDisagreement(Model& model) : model_(model) {}

    /// Forgets what was counted.
    void begin();
    /// A pass with these rows follows.
    void beginPass(const ExpertRows& rows);
    /// Adds what a layer's router says of a part of the tokens, see kernels::RouterTopK::differing.
    void add(const OpRunner& runner, std::size_t layer, const kernels::TensorView& differing);
    /// The share of the given ids since begin() that the routers would not have chosen; 0 where none were given. Waits
    /// for the device.
    double share() const;

private:
    Model& model_;
    kernels::Tensor sums_; ///< (layers) F32: each is exact up to 2^24 ids; made when experts are first given
    std::int64_t given_ = 0;
};

} // namespace vitrine::engine
