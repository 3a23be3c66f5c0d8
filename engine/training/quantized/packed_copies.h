// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Quantization-aware training: the model computes with the values that packed weights have, while the optimizer changes
// float32 masters, or an adapter that is merged into weights. Gradients pass straight through the rounding (Bengio and
// others 2013). Weights are packed once after an update, into copies that stay where they are; what reads packed
// weights reads the same bytes, so that fake and real quantization are equal.
//
// Of a master the model's own weight receives the values that the copy stands for. Of other weights the model's linear
// computes with the copy.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/training/adapters/adapter.h"
#include "engine/training/parameters/trained_state.h"
#include "engine/training/quantized/packed_targets.h"
#include "kernels/ops/linear/pack_weight.h"

namespace vitrine::engine {

/// Packed copies of weights. Belongs to the context's thread. The model, the state and the adapter outlive it.
class PackedCopies {
public:
    /// `state` is needed for targets with a tensor, `adapter` for those with a part. The values come with refresh().
    /// Throws BadInput "TENSOR: what to do" for a weight that cannot be packed so, OutOfMemory.
    /// `role` stands behind the names of their tensors, so that a session can tell them from what training computes
    /// with: " (rollout)".
    PackedCopies(Model& model, const std::vector<PackedTarget>& targets, const TrainedState* state, Adapter* adapter,
                 const std::string& role = {});
    ~PackedCopies();
    PackedCopies(const PackedCopies&) = delete; // the model has views of it
    PackedCopies& operator=(const PackedCopies&) = delete;

    /// Makes the copies of what training changes from the values that it has now, and the others once. Due when the
    /// trained values changed.
    void refresh();
    /// Gives the model's linears the copies that they compute with, or their own weights for a while, with the whole
    /// adapter beside them.
    void attach(bool attached);
    /// Whether linears whose masters are trained compute with the packed copies: for inference between updates, which
    /// reads fewer bytes so. The values are those of the model's own weights then.
    void serve(bool serves);
    /// Gives the model's own weights the values of their masters, as the model would have them if it were not
    /// quantized, or those of the copies again, as a refresh() leaves them.
    void showMasters(bool shows);
    /// How many weights a refresh() packs anew, and how often it did so with all of them.
    std::size_t changing() const { return changing_; }
    std::int64_t updates() const { return updates_; }
    /// The share of the codes of all changing copies that the last refresh() changed. Waits for it. 0 on Meta.
    double changedShare() const;

    std::size_t size() const { return targets_.size(); }
    const PackedTarget& target(std::size_t index) const { return targets_[index]; }
    /// Of the target with this number, in memory that stays.
    const kernels::WeightView& copy(std::size_t index) const { return weights_[index].out; }
    /// The number of the weight of that name; nothing where it has no copy.
    std::optional<std::size_t> indexOf(const std::string& weight) const;

private:
    /// A weight that is stored (in, out): groups of inputs lie in its columns. It is turned into scratch before it is
    /// packed, and what its codes stand for is turned back.
    struct Turned {
        std::size_t weight = 0; ///< its number
        kernels::TensorView stored, values;
    };

    struct Master {
        kernels::TensorView master, value; ///< of the same shape
    };

    void turnStored();
    void allocate(const std::string& role);
    void pack(std::size_t begin, std::size_t end, const kernels::TensorView& changed);

    Model& model_;
    Adapter* adapter_;
    std::vector<PackedTarget> targets_; ///< those that training changes come first
    std::vector<kernels::PackWeight> weights_;
    std::vector<Turned> turned_;
    std::vector<Master> masters_;
    std::size_t changing_ = 0; ///< how many
    bool frozenDone_ = false;
    std::int64_t updates_ = 0;
    std::unique_ptr<kernels::Arena> arena_;
    std::vector<kernels::Tensor> tensors_;
    kernels::Tensor changed_;                     ///< (1) I64
    kernels::Tensor turnedStored_, turnedValues_; ///< scratch for the largest of turned_
};

} // namespace vitrine::engine
