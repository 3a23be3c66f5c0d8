// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The tensors that a training run changes, with their gradients and the state of the optimizer.
//
// Gradients, masters and moments lie in one arena each, in the order of the tensors. Each tensor begins at a multiple
// of kTrainedPadding elements, so that tensors whose values lie in the same way (those of an adapter) take one
// optimizer op together.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/training/parameters/gradient_map.h"
#include "kernels/memory/memory.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

/// Elements; also a block of the 8-bit optimizer.
inline constexpr std::int64_t kTrainedPadding = 256;

constexpr std::int64_t paddedCount(std::int64_t count) {
    return (count + kTrainedPadding - 1) / kTrainedPadding * kTrainedPadding;
}

enum class OptimizerKind : std::uint8_t { AdamW, AdamW8Bit };

struct OptimizerOptions {
    OptimizerKind kind = OptimizerKind::AdamW;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weightDecay = 0.01;
    double clipNorm = 0; ///< largest norm of all gradients together; 0: no clipping
};

/// A tensor that is trained.
struct TrainedTensor {
    std::string name;          ///< as in the checkpoint or in the adapter's file
    kernels::TensorView value; ///< contiguous floats, what the forward pass reads
    /// The optimizer changes a float32 master, whatever the type of the value: something else makes the value from it.
    bool hasMaster = false;
};

/// Belongs to the context's thread. The values outlive it.
class TrainedState {
public:
    /// Values narrower than float32 get float32 masters, and others that ask for one. Throws OutOfMemory.
    TrainedState(kernels::Context& context, std::vector<TrainedTensor> tensors, const OptimizerOptions& options);

    const std::vector<TrainedTensor>& tensors() const { return tensors_; }
    const GradientMap& gradients() const { return map_; }
    std::int64_t elements() const; ///< of all tensors, without padding
    /// The float32 master of a tensor, in its shape; empty where the optimizer changes the value itself.
    kernels::TensorView master(std::size_t tensor) const;

    void zeroGradients();
    /// One step of the optimizer from the gradients; `step` counts from 1. `norm` (1) F32 receives the norm of all
    /// gradients before clipping.
    void update(double learningRate, std::int64_t step, const kernels::TensorView& norm);

    /// One piece of the state that a checkpoint keeps, on the device.
    struct Piece {
        std::string name; ///< "master", "moment1", ...
        kernels::TensorView view;
    };
    /// Everything but the gradients: with it and the same data a run goes on bit by bit. Masters stand for the values,
    /// where there are some; the values follow by valuesFromMasters().
    std::vector<Piece> pieces() const;
    void valuesFromMasters();

private:
    /// Tensors of which all parts lie one after the other.
    struct Run {
        kernels::TensorView value, master;
        std::int64_t offset = 0, count = 0; ///< in the flat tensors
        bool hasMaster = false;
    };

    void makeRuns();
    void makeState();
    kernels::TensorView part(const kernels::Tensor& flat, std::int64_t offset, std::int64_t count) const;
    template <class Op> void updateRun(Op op, const Run& run, double learningRate, std::int64_t step) const;

    kernels::Context& context_;
    std::vector<TrainedTensor> tensors_;
    OptimizerOptions options_;
    std::vector<std::int64_t> offsets_; ///< of the tensors
    std::int64_t padded_ = 0;           ///< elements of the flat tensors
    std::vector<Run> runs_;
    GradientMap map_;
    std::unique_ptr<kernels::Arena> arena_;
    kernels::Tensor gradients_, masters_;
    kernels::Tensor moment1_, moment2_; ///< of the 8-bit optimizer: codes
    kernels::Tensor absmax1_, absmax2_, maps_;
    kernels::Tensor squaredNorm_, gradScale_;
};

} // namespace vitrine::engine
