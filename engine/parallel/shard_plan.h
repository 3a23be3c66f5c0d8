// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which part of every weight each rank of a run has. Tensor parallelism (`tensor`) cuts attention, MLPs and every
// expert inside; expert parallelism (`expert`) gives whole experts to groups of ranks and brings tensor parallelism of
// attention with it, so attention is cut over all tensor * expert ranks. Rank r has the experts of group r / tensor,
// and part r % tensor of each.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/sliced_checkpoint.h"
#include "engine/parallel/shard.h"
#include "kernels/core/communicator.h"

namespace vitrine::engine {

struct ParallelShape {
    int tensor = 1;
    int expert = 1;

    int ranks() const { return tensor * expert; }
    bool operator==(const ParallelShape&) const = default;
};

/// Which part of a tensor a rank has. Tensors that are cut alike share one.
struct TensorCut {
    std::vector<std::int64_t> wholeShape; ///< TensorSpec::shape of the whole
    kernels::Shape wholeWeightShape;      ///< TensorSpec::weightShape of the whole
    TensorPart part;                      ///< of the tensor in the file
    TensorPart memory;                    ///< of the tensor as kernels would read the whole
};

/// A tensor of a checkpoint as one rank has it.
struct RankTensor {
    TensorSpec spec; ///< with the shapes of the part
    std::shared_ptr<const TensorCut> cut;

    /// What the rank has a part of: its shapes and what does not depend on them, but not `stored`.
    TensorSpec wholeSpec() const;
};

/// Immutable; any thread may use it.
class ShardPlan {
public:
    /// Throws BadInput "OPTION: TENSOR: what cannot be divided, and the nearest number of ranks that works".
    ShardPlan(const ModelConfig& config, ParallelShape shape);

    const ParallelShape& shape() const { return shape_; }
    int ranks() const { return shape_.ranks(); }

    /// The part that a rank has of a tensor of expectedTensors(config); nothing: it has none.
    std::optional<RankTensor> tensorOf(TensorSpec whole, int rank) const;
    /// The same for many tensors of one rank, most of which are alike.
    class Parts {
    public:
        Parts(const ShardPlan& plan, int rank) : plan_(plan), rank_(rank) {}
        std::optional<RankTensor> of(TensorSpec whole);

    private:
        const ShardPlan& plan_;
        int rank_;
        /// What the part of a packed tensor depends on.
        using Key = std::tuple<ParameterRole, kernels::WeightField, StorageScheme, kernels::WeightFormat, std::int64_t,
                               std::int64_t, bool, std::vector<std::int64_t>, std::vector<std::int64_t>>;
        std::map<Key, RankTensor> known_;
    };
    kernels::RankShare experts(int rank) const;
    kernels::RankShare heads(int rank) const;
    kernels::RankShare keyHeads(int rank) const;
    kernels::RankShare vocabulary(int rank) const;
    /// A text that is the same for ranks whose parts have the same sizes.
    std::string kindOf(int rank) const;

private:
    std::optional<TensorSlice> sliceOf(const ParameterShard& shard, const std::vector<std::int64_t>& shape,
                                       ParameterRole role, int rank) const;
    kernels::RankShare shareOf(const ShardAxis& axis, std::int64_t elements, ParameterRole role, int rank) const;
    std::int64_t featuresTogether(ParameterRole role, std::int64_t features) const;
    bool hasExpert(const std::string& weight, int rank) const;
    void findUnits(const std::vector<TensorSpec>& specs);
    /// A tensor that these ranks cannot divide.
    struct Refusal {
        std::string tensor;
        std::string what;
    };
    std::optional<Refusal> refusedCount(const TensorSpec& spec, const ShardAxis& axis) const;
    std::optional<Refusal> firstRefusal(const std::vector<TensorSpec>& specs) const;

    ModelConfig config_;
    ParallelShape shape_;
    /// Features that stay together because packed weights share scales or words between them; by the role of the
    /// product that reads or makes them.
    std::map<ParameterRole, std::int64_t> featureUnits_;
};

/// Whether ranks can divide the model so.
bool canDivide(const ModelConfig& config, ParallelShape shape);

/// What one rank loads: its part of every tensor.
struct RankShards {
    /// `checkpoint` may be null: a synthetic model.
    RankShards(std::shared_ptr<const ShardPlan> plan, int rank, const std::shared_ptr<const Checkpoint>& checkpoint,
               const ModelConfig& config);

    std::shared_ptr<const ShardPlan> plan;
    int rank = 0;
    std::vector<RankTensor> tensors;         ///< in checkpoint order
    std::vector<std::uint32_t> indices;      ///< of each in expectedTensors(config)
    std::shared_ptr<const Checkpoint> files; ///< the parts; null for synthetic models
};

} // namespace vitrine::engine
