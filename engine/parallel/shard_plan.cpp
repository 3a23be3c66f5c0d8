// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/parallel/shard_plan.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <set>
#include <tuple>

#include "base/error.h"
#include "engine/checkpoint/single_expert.h"
#include "engine/parallel/stored_slice.h"

namespace vitrine::engine {

namespace {

using kernels::RankShare;
using kernels::rankShare;

constexpr int kMostRanks = 1024;

std::vector<std::int64_t> weightDims(const TensorSpec& spec) {
    return spec.packed() ? dimsOf(spec.weightShape) : spec.shape;
}

const std::string& weightName(const TensorSpec& spec) {
    return spec.packed() ? spec.weight : spec.name;
}

ParameterShard shardOfSpec(const ModelConfig& config, const TensorSpec& spec) {
    const std::string& name = weightName(spec);
    const auto rank = static_cast<int>(weightDims(spec).size());
    const bool transposed = config.family == Family::GptOss && !spec.packed();
    return shardOf(config, roleOf(name), isBias(name), rank, transposed);
}

/// Products that share features have one unit of them.
ParameterRole ownerOfFeatures(ParameterRole role) {
    switch (role) {
    case ParameterRole::Gate:
    case ParameterRole::Up:
        return ParameterRole::Down;
    case ParameterRole::SharedGate:
    case ParameterRole::SharedUp:
        return ParameterRole::SharedDown;
    case ParameterRole::ExpertGateUp:
        return ParameterRole::ExpertDown;
    default:
        return role;
    }
}

bool ofFeatures(ShardUnit unit) {
    return unit == ShardUnit::Features || unit == ShardUnit::ExpertFeatures;
}

/// The count nearest to `wanted` that `works`; the lower one of two. 1 always does.
int nearest(int wanted, const std::function<bool(int)>& works) {
    for (int distance = 1; distance < wanted + kMostRanks; ++distance) {
        for (const int count : {wanted - distance, wanted + distance}) {
            if (count >= 1 && count <= kMostRanks && works(count)) {
                return count;
            }
        }
    }
    return 1;
}

} // namespace

ShardPlan::ShardPlan(const ModelConfig& config, ParallelShape shape) : config_(config), shape_(shape) {
    if (ranks() == 1) {
        return;
    }
    const std::vector<TensorSpec> specs = expectedTensors(config_);
    findUnits(specs);
    const auto refusal = [&](ParallelShape tried) {
        ShardPlan other = *this;
        other.shape_ = tried;
        return other.firstRefusal(specs);
    };
    const auto found = firstRefusal(specs);
    if (!found) {
        return;
    }
    const bool byExperts = shape.expert > 1 && (shape.tensor == 1 || found->what.find("expert") != std::string::npos);
    const int wanted = byExperts ? shape.expert : shape.tensor;
    const int works = nearest(wanted, [&](int count) {
        return !refusal(byExperts ? ParallelShape{shape.tensor, count} : ParallelShape{count, shape.expert});
    });
    throw base::BadInput(fmt::format("--{} {}: {}: {}; the nearest number that works is {}", byExperts ? "ep" : "tp",
                                     wanted, found->tensor, found->what, works));
}

RankShare ShardPlan::experts(int rank) const {
    return rankShare(config_.experts, rank / shape_.tensor, shape_.expert);
}

RankShare ShardPlan::heads(int rank) const {
    return rankShare(config_.heads, rank, ranks());
}

RankShare ShardPlan::keyHeads(int rank) const {
    if (config_.kvHeads >= ranks()) {
        return rankShare(config_.kvHeads, rank, ranks());
    }
    const std::int64_t head = rank * config_.kvHeads / ranks(); // several ranks have the same one
    return {head, head + 1};
}

RankShare ShardPlan::vocabulary(int rank) const {
    return rankShare(config_.vocab, rank, ranks());
}

std::string ShardPlan::kindOf(int rank) const {
    const auto features = [&](std::int64_t all, ParameterRole role, ShardUnit unit) {
        return shareOf({0, unit}, all, role, rank).count();
    };
    const bool biased = config_.outBias || config_.mlpBias;
    return fmt::format(
        "{} {} {} {} {} {} {}{}{}", heads(rank).count(), keyHeads(rank).count(), experts(rank).count(),
        vocabulary(rank).count(), features(config_.intermediate, ParameterRole::Down, ShardUnit::Features),
        features(config_.sharedIntermediate, ParameterRole::SharedDown, ShardUnit::Features),
        features(config_.moeIntermediate, ParameterRole::ExpertDown, ShardUnit::ExpertFeatures),
        biased && rank == 0 ? " bias" : "", config_.expertBias && rank % shape_.tensor == 0 ? " expert bias" : "");
}

/// Of `features` that the products of that role share; all of them where units would leave a rest.
std::int64_t ShardPlan::featuresTogether(ParameterRole role, std::int64_t features) const {
    const auto known = featureUnits_.find(ownerOfFeatures(role));
    const std::int64_t unit = known == featureUnits_.end() ? 1 : known->second;
    return features % unit == 0 ? unit : features;
}

RankShare ShardPlan::shareOf(const ShardAxis& axis, std::int64_t elements, ParameterRole role, int rank) const {
    switch (axis.unit) {
    case ShardUnit::Heads:
        return heads(rank);
    case ShardUnit::KeyHeads:
        return keyHeads(rank);
    case ShardUnit::Experts:
        return experts(rank);
    case ShardUnit::VocabularyRows:
        return vocabulary(rank);
    case ShardUnit::Features:
    case ShardUnit::ExpertFeatures:
        break;
    }
    const bool inside = axis.unit == ShardUnit::ExpertFeatures;
    const int parts = inside ? shape_.tensor : ranks();
    const std::int64_t features = elements / axis.unitSize / axis.blocks;
    const std::int64_t unit = featuresTogether(role, features);
    const RankShare share = rankShare(features / unit, inside ? rank % parts : rank, parts);
    return {share.begin * unit, share.end * unit};
}

std::optional<TensorSlice> ShardPlan::sliceOf(const ParameterShard& shard, const std::vector<std::int64_t>& shape,
                                              ParameterRole role, int rank) const {
    if (shard.state == ShardState::Partial) {
        const bool ofExpert = role == ParameterRole::ExpertDown;
        if (ofExpert ? rank % shape_.tensor != 0 : rank != 0) {
            return std::nullopt;
        }
    }
    TensorSlice slice = wholeSlice(shape);
    for (const ShardAxis& axis : shard.axes) {
        const auto at = static_cast<std::size_t>(axis.axis);
        const RankShare share = shareOf(axis, shape[at], role, rank);
        slice[at] = {share.begin * axis.unitSize, share.count() * axis.unitSize, axis.blocks};
        slice[at].blocks = slice[at].size() == shape[at] ? 1 : axis.blocks;
        if (slice[at].blocks == 1) {
            slice[at].count = share.count() * axis.unitSize * axis.blocks;
        }
    }
    return slice;
}

TensorSpec RankTensor::wholeSpec() const {
    TensorSpec out = spec;
    out.shape = cut->wholeShape;
    out.weightShape = cut->wholeWeightShape;
    return out;
}

std::optional<RankTensor> ShardPlan::tensorOf(TensorSpec whole, int rank) const {
    const std::string& name = weightName(whole);
    const ParameterRole role = roleOf(name);
    if (!hasExpert(name, rank)) {
        return std::nullopt;
    }
    const std::vector<std::int64_t> shape = weightDims(whole);
    const auto slice = sliceOf(shardOfSpec(config_, whole), shape, role, rank);
    if (!slice) {
        return std::nullopt;
    }
    const std::vector<std::int64_t> inMemory = whole.packed() ? dimsOf(whole.stored.memoryShape) : whole.shape;
    TensorCut cut{
        whole.shape, whole.weightShape, {whole.shape, wholeSlice(whole.shape)}, {inMemory, wholeSlice(inMemory)}};
    if (*slice == wholeSlice(shape)) {
        return RankTensor{std::move(whole), std::make_shared<const TensorCut>(std::move(cut))};
    }
    if (whole.packed()) {
        auto part = storedPart(whole, *slice);
        if (!part) {
            throw base::Internal(fmt::format("{}: rank {} has no whole groups of it", whole.name, rank));
        }
        cut.part = std::move(part->part);
        cut.memory = std::move(part->memory);
        return RankTensor{std::move(part->spec), std::make_shared<const TensorCut>(std::move(cut))};
    }
    cut.part.slice = cut.memory.slice = *slice;
    for (std::size_t dim = 0; dim < slice->size(); ++dim) {
        whole.shape[dim] = (*slice)[dim].size();
    }
    return RankTensor{std::move(whole), std::make_shared<const TensorCut>(std::move(cut))};
}

/// False for a single expert's weight that another rank has.
bool ShardPlan::hasExpert(const std::string& weight, int rank) const {
    if (shape_.expert == 1) {
        return true;
    }
    const SingleExpert single(weight);
    const RankShare share = experts(rank);
    return single.expert < 0 || (single.expert >= share.begin && single.expert < share.end);
}

std::optional<RankTensor> ShardPlan::Parts::of(TensorSpec whole) {
    if (!whole.packed()) {
        return plan_.tensorOf(std::move(whole), rank_);
    }
    if (!plan_.hasExpert(whole.weight, rank_)) {
        return std::nullopt;
    }
    const WeightPacking& packing = whole.packing;
    Key key{roleOf(whole.weight), whole.stored.field,   packing.scheme, packing.format,           packing.group,
            packing.rowGroup,     packing.packedScales, whole.shape,    dimsOf(whole.weightShape)};
    const auto known = known_.find(key);
    if (known == known_.end()) {
        std::optional<RankTensor> made = plan_.tensorOf(std::move(whole), rank_);
        if (made) {
            known_.emplace(std::move(key), *made);
        }
        return made;
    }
    const RankTensor& alike = known->second;
    whole.shape = alike.spec.shape;
    whole.weightShape = alike.spec.weightShape;
    whole.stored.shape = alike.spec.stored.shape;
    whole.stored.memoryShape = alike.spec.stored.memoryShape;
    return RankTensor{std::move(whole), alike.cut};
}

/// One tensor of each kind is asked: layers are alike.
void ShardPlan::findUnits(const std::vector<TensorSpec>& specs) {
    std::set<std::tuple<ParameterRole, kernels::WeightField, std::vector<std::int64_t>>> seen;
    for (const TensorSpec& spec : specs) {
        const ParameterRole role = roleOf(weightName(spec));
        if (!spec.packed() || !seen.emplace(role, spec.stored.field, spec.shape).second) {
            continue;
        }
        for (const ShardAxis& axis : shardOfSpec(config_, spec).axes) {
            if (ofFeatures(axis.unit)) {
                std::int64_t& unit = featureUnits_.try_emplace(ownerOfFeatures(role), 1).first->second;
                const std::int64_t stored = storedUnit(spec, axis.axis);
                unit = std::lcm(unit, std::max<std::int64_t>(1, stored / axis.unitSize / axis.blocks));
            }
        }
    }
}

std::optional<ShardPlan::Refusal> ShardPlan::refusedCount(const TensorSpec& spec, const ShardAxis& axis) const {
    const int all = ranks();
    const auto refuse = [&](std::int64_t count, std::string what, int parts) {
        if (count == 1 && what.starts_with("groups")) {
            what.erase(5, 1);
        }
        return Refusal{weightName(spec), fmt::format("{} {} cannot be divided among {} ranks", count, what, parts)};
    };
    switch (axis.unit) {
    case ShardUnit::Heads:
        return config_.heads % all == 0 ? std::nullopt : std::optional(refuse(config_.heads, "heads", all));
    case ShardUnit::KeyHeads:
        return config_.kvHeads % all == 0 || all % config_.kvHeads == 0
                   ? std::nullopt
                   : std::optional(refuse(config_.kvHeads, "heads of keys and values", all));
    case ShardUnit::Experts:
        return config_.experts % shape_.expert == 0 ? std::nullopt
                                                    : std::optional(refuse(config_.experts, "experts", shape_.expert));
    case ShardUnit::VocabularyRows:
        return config_.vocab >= all ? std::nullopt : std::optional(refuse(config_.vocab, "tokens", all));
    case ShardUnit::Features:
    case ShardUnit::ExpertFeatures:
        break;
    }
    const int parts = axis.unit == ShardUnit::ExpertFeatures ? shape_.tensor : all;
    const std::int64_t features = weightDims(spec)[static_cast<std::size_t>(axis.axis)] / axis.unitSize / axis.blocks;
    const std::int64_t unit = featuresTogether(roleOf(weightName(spec)), features);
    if (features / unit >= parts) {
        return std::nullopt;
    }
    return unit == 1 ? refuse(features, "features", parts)
                     : refuse(features / unit, fmt::format("groups of {} features", unit), parts);
}

std::optional<ShardPlan::Refusal> ShardPlan::firstRefusal(const std::vector<TensorSpec>& specs) const {
    std::set<std::tuple<ParameterRole, bool, kernels::WeightField, std::vector<std::int64_t>>> seen;
    if (shape_.expert > 1 && config_.experts == 0) {
        return Refusal{"num_experts", "the model has no experts that ranks could divide"};
    }
    for (const TensorSpec& spec : specs) {
        const std::string& name = weightName(spec);
        if (!seen.emplace(roleOf(name), isBias(name), spec.stored.field, spec.shape).second) {
            continue;
        }
        const ParameterShard shard = shardOfSpec(config_, spec);
        for (const ShardAxis& axis : shard.axes) {
            if (auto refusal = refusedCount(spec, axis)) {
                return refusal;
            }
        }
        for (int rank = 0; spec.packed() && rank < ranks(); ++rank) {
            const auto slice = sliceOf(shard, weightDims(spec), roleOf(name), rank);
            if (slice && *slice != wholeSlice(weightDims(spec)) && !storedPart(spec, *slice)) {
                return Refusal{name, fmt::format("{} ranks would cut through its groups", ranks())};
            }
        }
    }
    return std::nullopt;
}

bool canDivide(const ModelConfig& config, ParallelShape shape) {
    try {
        const ShardPlan plan(config, shape);
        return true;
    } catch (const base::BadInput&) {
        return false;
    }
}

RankShards::RankShards(std::shared_ptr<const ShardPlan> shardPlan, int ofRank,
                       const std::shared_ptr<const Checkpoint>& checkpoint, const ModelConfig& config)
    : plan(std::move(shardPlan)), rank(ofRank) {
    std::vector<TensorSpec> specs = expectedTensors(config);
    std::map<const TensorEntry*, std::shared_ptr<const TensorCut>> parts;
    ShardPlan::Parts made(*plan, rank);
    tensors.reserve(specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
        std::optional<RankTensor> mine = made.of(std::move(specs[i]));
        if (!mine) {
            continue;
        }
        if (checkpoint != nullptr) {
            if (const Checkpoint::Location* location = findModelTensor(*checkpoint, mine->spec.name)) {
                parts.emplace(location->entry, mine->cut);
            }
        }
        tensors.push_back(std::move(*mine));
        indices.push_back(static_cast<std::uint32_t>(i));
    }
    if (checkpoint == nullptr) {
        return;
    }
    const auto partOf = [&](const TensorEntry& entry) -> std::optional<TensorPart> {
        const auto found = parts.find(&entry);
        return found == parts.end() ? std::nullopt : std::optional(found->second->part);
    };
    files = sliceCheckpoint(checkpoint, partOf,
                            fmt::format("part {} of tp {} ep {}", rank, plan->shape().tensor, plan->shape().expert));
}

} // namespace vitrine::engine
