// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How a parameter lies on several ranks, as data: by its role alone, whatever the number of ranks. Layouts, loaders,
// plans and views obey it. The way of dividing is that of Megatron-LM (Shoeybi et al. 2019, section 3): the first
// product of a block by its outputs, the second one by its inputs, so that a block needs one sum over ranks.

#include <cstdint>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/parallel/parameter_role.h"

namespace vitrine::engine {

/// What stays together when a dimension is divided.
enum class ShardUnit : std::uint8_t {
    Heads,          ///< of queries
    KeyHeads,       ///< of keys and values; several ranks have the same one where there are more ranks than heads
    Experts,        ///< whole ones
    Features,       ///< between the two products of an MLP
    ExpertFeatures, ///< the same inside of an expert
    VocabularyRows,
};

/// One divided dimension of a weight (..., out, in).
struct ShardAxis {
    int axis = 0;
    ShardUnit unit = ShardUnit::Heads;
    std::int64_t unitSize = 1; ///< elements of a unit
    std::int64_t blocks = 1;   ///< equal blocks of the dimension, each divided alike: gate, then up
};

enum class ShardState : std::uint8_t {
    Mirrored, ///< every rank has the whole
    Divided,  ///< along `axes`
    Partial,  ///< a summand: one of the ranks that add up has it, divided along `axes` where there are any
};

struct ParameterShard {
    ShardState state = ShardState::Mirrored;
    std::vector<ShardAxis> axes;

    /// The divided dimension; -1: there is none. The outermost one of two.
    int axis() const { return axes.empty() ? -1 : axes.front().axis; }
};

/// `bias`: of the bias that is added to the product of that role. `rank` is the number of dimensions of the whole
/// parameter as it is in memory, and `transposed` says that a stack of experts has its inputs first.
ParameterShard shardOf(const ModelConfig& config, ParameterRole role, bool bias, int rank, bool transposed = false);

} // namespace vitrine::engine
