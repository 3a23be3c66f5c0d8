// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The memory pyramid as it is written: a node for every kLeafEvents events, and a node above every kFanOut nodes. Each
// gives the smallest and the largest total after any of its events (PyramidNode).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/record/memory_step.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

inline constexpr std::size_t kLeafEvents = 128;
inline constexpr std::size_t kFanOut = 8;

/// Puts a state after an event into a node. The first state makes the node.
void addToNode(PyramidNode& node, const MemoryState& state, base::TimeNs time, std::uint64_t eventIndex);
/// Puts the node that follows into a node.
void addToNode(PyramidNode& node, const PyramidNode& next);

/// Nodes as they become full, for the session file; remembers nothing else.
class PyramidWriter {
public:
    /// Adds an event of device memory (others change nothing but the count).
    void add(base::TimeNs time, MemoryChange step);
    /// Adds the nodes that are not full yet, up to a single top node.
    void finish();

    /// Full nodes of each level since the last call.
    std::vector<std::vector<PyramidNode>> take();

private:
    void push(std::size_t level, const PyramidNode& node);

    std::uint64_t size_ = 0;
    MemoryState state_;
    PyramidNode leaf_;
    struct Level {
        std::vector<PyramidNode> ready;
        PyramidNode parent; ///< of the last children
        std::size_t children = 0;
    };
    std::vector<Level> levels_;
};

} // namespace vitrine::profiler
