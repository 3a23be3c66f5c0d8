// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which rectangles (address x lifetime) a picture of the memory needs, found without looking at every block.
//
// Blocks that died stand in one list for each power of two of their lifetime, in the order of their deaths. Over each
// list stands a tree: a node knows the extents of its blocks and covers them by at most kClusters boxes that follow
// their addresses. A node whose blocks are all too small to draw, and that is narrow on the screen, is drawn as its
// boxes; only other nodes are opened. What is left over is merged by screen cells until it is few enough. Nothing is
// ever dropped: the counts of the shapes add up to the blocks in the window.

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

/// A block as a rectangle. `end` of a block that lives is the end of the timeline.
struct BlockBox {
    std::uint64_t address = 0, bytes = 0;
    base::TimeNs begin = 0, end = 0;
};
using BoxOf = std::function<BlockBox(std::uint32_t row)>;

/// Some blocks that are drawn together.
struct ShapeCluster {
    std::uint64_t addressBegin = 0, addressEnd = 0;
    base::TimeNs begin = 0, end = 0;
    std::uint64_t largest = 0; ///< bytes of the largest, which is `row`
    std::uint32_t row = 0;
    std::uint32_t count = 0;
};

struct ShapeNode {
    static constexpr std::size_t kRows = 64;  ///< of a lowest node
    static constexpr std::size_t kFanOut = 8; ///< of the others
    static constexpr std::size_t kClusters = 6;

    base::TimeNs beginMin = 0, beginMax = 0, endMin = 0, endMax = 0;
    base::TimeNs longest = 0;
    std::uint64_t bytesMax = 0;
    std::uint32_t clusterCount = 0;
    std::array<ShapeCluster, kClusters> clusters;
};

/// One list of rows and the tree over it.
struct ShapeList {
    BlockView<std::uint32_t, 256> rows;
    std::vector<BlockView<ShapeNode, 16>> levels;
};

struct ShapeIndexView {
    std::vector<ShapeList> lists;
};

class ShapeListBuilder {
public:
    void add(std::uint32_t row, const BoxOf& boxOf);
    void removeLast();
    bool empty() const { return rows_.empty(); }
    ShapeList view();

private:
    SegmentedVector<std::uint32_t, 256> rows_;
    std::vector<SegmentedVector<ShapeNode, 16>> levels_;
};

class ShapeIndexBuilder {
public:
    /// `box` is the row's, dead now; `boxOf` answers for every row that was added.
    void add(std::uint32_t row, const BlockBox& box, const BoxOf& boxOf);
    /// Takes back the latest add, which was of this box.
    void removeLast(const BlockBox& box);
    ShapeIndexView view();

private:
    std::vector<ShapeListBuilder> lists_;
};

struct ShapeQuery {
    base::TimeNs begin = 0, end = 0;
    double nsPerPixel = 1, bytesPerPixel = 1;
};

/// A block is drawn alone from this size on, in pixels of both directions.
inline constexpr double kAlonePixels = 2;
inline constexpr std::size_t kMaxShapes = 20'000;

/// Shapes of the blocks that live at some time in [query.begin, query.end], largest shapes alone, others merged.
std::vector<AllocationShape> collectShapes(const std::vector<const ShapeList*>& lists, const BoxOf& boxOf,
                                           const ShapeQuery& query);

} // namespace vitrine::profiler
