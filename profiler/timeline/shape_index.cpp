// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/shape_index.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace vitrine::profiler {

namespace {

constexpr double kCellPixels = 6;
constexpr std::size_t kMaxAlone = kMaxShapes - kMaxShapes / 4;
constexpr std::size_t kMaxMerged = kMaxShapes - kMaxAlone;

void merge(ShapeCluster& into, const ShapeCluster& other) {
    into.addressBegin = std::min(into.addressBegin, other.addressBegin);
    into.addressEnd = std::max(into.addressEnd, other.addressEnd);
    into.begin = std::min(into.begin, other.begin);
    into.end = std::max(into.end, other.end);
    into.count += other.count;
    if (other.largest > into.largest) {
        into.largest = other.largest;
        into.row = other.row;
    }
}

ShapeCluster clusterOf(std::uint32_t row, const BlockBox& box) {
    return {box.address, box.address + box.bytes, box.begin, box.end, box.bytes, row, 1};
}

/// Covers the pieces by at most kClusters boxes, cut where the addresses between them are widest.
void cover(std::vector<ShapeCluster>& pieces, ShapeNode& node) {
    std::ranges::sort(pieces, {}, &ShapeCluster::addressBegin);
    struct Gap {
        std::uint64_t size = 0;
        std::size_t before = 0; ///< index of the piece after the gap
    };
    std::array<Gap, ShapeNode::kRows + ShapeNode::kFanOut * ShapeNode::kClusters> gaps;
    std::size_t gapCount = 0;
    std::uint64_t reach = pieces.front().addressEnd;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        if (pieces[i].addressBegin > reach) {
            gaps[gapCount++] = {pieces[i].addressBegin - reach, i};
        }
        reach = std::max(reach, pieces[i].addressEnd);
    }
    const std::size_t cuts = std::min(gapCount, ShapeNode::kClusters - 1);
    std::partial_sort(gaps.begin(), gaps.begin() + cuts, gaps.begin() + gapCount,
                      [](const Gap& a, const Gap& b) { return a.size > b.size; });
    std::sort(gaps.begin(), gaps.begin() + cuts, [](const Gap& a, const Gap& b) { return a.before < b.before; });
    std::size_t cut = 0;
    node.clusterCount = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const bool starts = i == 0 || (cut < cuts && gaps[cut].before == i);
        if (starts) {
            cut += i == 0 ? 0 : 1;
            node.clusters[node.clusterCount++] = pieces[i];
        } else {
            merge(node.clusters[node.clusterCount - 1], pieces[i]);
        }
    }
}

ShapeNode leafNode(std::span<const std::uint32_t> rows, const BoxOf& boxOf) {
    ShapeNode node;
    std::vector<ShapeCluster> pieces;
    pieces.reserve(rows.size());
    for (const std::uint32_t row : rows) {
        const BlockBox box = boxOf(row);
        const bool first = pieces.empty();
        node.beginMin = first ? box.begin : std::min(node.beginMin, box.begin);
        node.beginMax = first ? box.begin : std::max(node.beginMax, box.begin);
        node.endMin = first ? box.end : std::min(node.endMin, box.end);
        node.endMax = first ? box.end : std::max(node.endMax, box.end);
        node.longest = std::max(node.longest, box.end - box.begin);
        node.bytesMax = std::max(node.bytesMax, box.bytes);
        pieces.push_back(clusterOf(row, box));
    }
    cover(pieces, node);
    return node;
}

template <class Children> ShapeNode parentNode(const Children& children, std::size_t first) {
    ShapeNode node = children[first];
    std::vector<ShapeCluster> pieces;
    pieces.reserve(ShapeNode::kFanOut * ShapeNode::kClusters);
    for (std::size_t i = first; i < first + ShapeNode::kFanOut; ++i) {
        const ShapeNode& child = children[i];
        node.beginMin = std::min(node.beginMin, child.beginMin);
        node.beginMax = std::max(node.beginMax, child.beginMax);
        node.endMin = std::min(node.endMin, child.endMin);
        node.endMax = std::max(node.endMax, child.endMax);
        node.longest = std::max(node.longest, child.longest);
        node.bytesMax = std::max(node.bytesMax, child.bytesMax);
        pieces.insert(pieces.end(), child.clusters.begin(), child.clusters.begin() + child.clusterCount);
    }
    cover(pieces, node);
    return node;
}

std::size_t listOf(const BlockBox& box) {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(box.end - box.begin)));
}

/// Walks the trees and sorts what is in the window into shapes of their own and clusters.
class Collector {
public:
    Collector(const BoxOf& boxOf, const ShapeQuery& query)
        : boxOf_(boxOf), query_(query), aloneNs_(kAlonePixels * query.nsPerPixel),
          aloneBytes_(kAlonePixels * query.bytesPerPixel), cellNs_(kCellPixels * query.nsPerPixel) {}

    void take(const ShapeList& list) {
        // Full nodes of the highest level first, then what is after them, level by level.
        std::size_t covered = 0;
        for (std::size_t level = list.levels.size(); level-- > 0;) {
            const std::size_t span = spanOf(level);
            for (std::size_t node = covered / span; node < list.levels[level].size(); ++node) {
                visit(list, level, node);
                covered = (node + 1) * span;
            }
        }
        takeRows(list, covered, list.rows.size());
    }

    std::vector<ShapeCluster>& alone() { return alone_; }
    std::vector<ShapeCluster>& merged() { return merged_; }

private:
    static std::size_t spanOf(std::size_t level) {
        std::size_t span = ShapeNode::kRows;
        for (std::size_t i = 0; i < level; ++i) {
            span *= ShapeNode::kFanOut;
        }
        return span;
    }

    void visit(const ShapeList& list, std::size_t level, std::size_t index) {
        const ShapeNode& node = list.levels[level][index];
        if (node.beginMin > query_.end || node.endMax < query_.begin) {
            return;
        }
        const bool allInside = node.beginMax <= query_.end && node.endMin >= query_.begin;
        const bool allSmall =
            static_cast<double>(node.longest) < aloneNs_ || static_cast<double>(node.bytesMax) < aloneBytes_;
        // Blocks of a list live about equally long, so similar births mean similar deaths.
        const double width = std::max(cellNs_, static_cast<double>(node.longest) / 2);
        if (allInside && allSmall && static_cast<double>(node.beginMax - node.beginMin) <= width) {
            merged_.insert(merged_.end(), node.clusters.begin(), node.clusters.begin() + node.clusterCount);
            return;
        }
        if (level == 0) {
            takeRows(list, index * ShapeNode::kRows, (index + 1) * ShapeNode::kRows);
            return;
        }
        for (std::size_t child = index * ShapeNode::kFanOut; child < (index + 1) * ShapeNode::kFanOut; ++child) {
            visit(list, level - 1, child);
        }
    }

    void takeRows(const ShapeList& list, std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) {
            const std::uint32_t row = list.rows[i];
            const BlockBox box = boxOf_(row);
            if (box.begin > query_.end || box.end < query_.begin) {
                continue;
            }
            const bool big =
                static_cast<double>(box.end - box.begin) >= aloneNs_ && static_cast<double>(box.bytes) >= aloneBytes_;
            (big ? alone_ : merged_).push_back(clusterOf(row, box));
        }
    }

    const BoxOf& boxOf_;
    const ShapeQuery& query_;
    double aloneNs_, aloneBytes_, cellNs_;
    std::vector<ShapeCluster> alone_, merged_;
};

struct CellKey {
    std::int64_t left, right, bottom, top;
    friend bool operator==(const CellKey&, const CellKey&) = default;
    std::size_t hash() const {
        std::uint64_t hash = 0;
        for (const std::int64_t part : {left, right, bottom, top}) {
            hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 32;
        }
        return static_cast<std::size_t>(hash);
    }
};

/// Merges clusters whose four edges lie in the same cells.
std::vector<ShapeCluster> mergeByCell(const std::vector<ShapeCluster>& clusters, base::TimeNs origin, double cellNs,
                                      double cellBytes) {
    std::vector<ShapeCluster> merged;
    std::vector<CellKey> keys;
    std::size_t slots = 64;
    while (slots < clusters.size() * 2) {
        slots *= 2;
    }
    std::vector<std::uint32_t> table(slots, 0); // index + 1
    for (const ShapeCluster& cluster : clusters) {
        const auto cell = [](double distance, double size) {
            return static_cast<std::int64_t>(std::clamp(std::floor(distance / size), -9e18, 9e18));
        };
        const CellKey key{cell(static_cast<double>(cluster.begin - origin), cellNs),
                          cell(static_cast<double>(cluster.end - origin), cellNs),
                          cell(static_cast<double>(cluster.addressBegin), cellBytes),
                          cell(static_cast<double>(cluster.addressEnd), cellBytes)};
        std::size_t slot = key.hash() & (slots - 1);
        while (table[slot] != 0 && !(keys[table[slot] - 1] == key)) {
            slot = (slot + 1) & (slots - 1);
        }
        if (table[slot] == 0) {
            merged.push_back(cluster);
            keys.push_back(key);
            table[slot] = static_cast<std::uint32_t>(merged.size());
        } else {
            merge(merged[table[slot] - 1], cluster);
        }
    }
    return merged;
}

} // namespace

void ShapeListBuilder::add(std::uint32_t row, const BoxOf& boxOf) {
    rows_.push(row);
    if (rows_.size() % ShapeNode::kRows != 0) {
        return;
    }
    std::array<std::uint32_t, ShapeNode::kRows> rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = rows_[rows_.size() - ShapeNode::kRows + i];
    }
    if (levels_.empty()) {
        levels_.emplace_back();
    }
    levels_[0].push(leafNode(rows, boxOf));
    for (std::size_t level = 0; levels_[level].size() % ShapeNode::kFanOut == 0; ++level) {
        if (level + 1 == levels_.size()) {
            levels_.emplace_back();
        }
        levels_[level + 1].push(parentNode(levels_[level], levels_[level].size() - ShapeNode::kFanOut));
    }
}

void ShapeListBuilder::removeLast() {
    rows_.truncate(rows_.size() - 1);
    std::size_t nodes = rows_.size() / ShapeNode::kRows;
    for (auto& level : levels_) {
        level.truncate(std::min(level.size(), nodes));
        nodes /= ShapeNode::kFanOut;
    }
}

ShapeList ShapeListBuilder::view() {
    ShapeList list{rows_.view(), {}};
    for (auto& level : levels_) {
        list.levels.push_back(level.view());
    }
    return list;
}

void ShapeIndexBuilder::add(std::uint32_t row, const BlockBox& box, const BoxOf& boxOf) {
    const std::size_t list = listOf(box);
    if (list >= lists_.size()) {
        lists_.resize(list + 1);
    }
    lists_[list].add(row, boxOf);
}

void ShapeIndexBuilder::removeLast(const BlockBox& box) {
    lists_[listOf(box)].removeLast();
}

ShapeIndexView ShapeIndexBuilder::view() {
    ShapeIndexView view;
    for (ShapeListBuilder& list : lists_) {
        if (!list.empty()) {
            view.lists.push_back(list.view());
        }
    }
    return view;
}

std::vector<AllocationShape> collectShapes(const std::vector<const ShapeList*>& lists, const BoxOf& boxOf,
                                           const ShapeQuery& query) {
    Collector collector(boxOf, query);
    for (const ShapeList* list : lists) {
        collector.take(*list);
    }
    std::vector<ShapeCluster>& alone = collector.alone();
    std::vector<ShapeCluster>& small = collector.merged();
    if (alone.size() > kMaxAlone) {
        const auto area = [&](const ShapeCluster& c) {
            return static_cast<double>(c.end - c.begin) * static_cast<double>(c.addressEnd - c.addressBegin);
        };
        std::nth_element(alone.begin(), alone.begin() + kMaxAlone, alone.end(),
                         [&](const ShapeCluster& a, const ShapeCluster& b) { return area(a) > area(b); });
        small.insert(small.end(), alone.begin() + kMaxAlone, alone.end());
        alone.resize(kMaxAlone);
    }
    double cellNs = std::max(1.0, kCellPixels * query.nsPerPixel);
    double cellBytes = std::max(1.0, kCellPixels * query.bytesPerPixel);
    small = mergeByCell(small, query.begin, cellNs, cellBytes);
    while (small.size() > kMaxMerged) {
        cellNs *= 2;
        cellBytes *= 2;
        small = mergeByCell(small, query.begin, cellNs, cellBytes);
    }
    std::vector<AllocationShape> shapes;
    shapes.reserve(alone.size() + small.size());
    for (const std::vector<ShapeCluster>* clusters : {&small, &alone}) {
        for (const ShapeCluster& c : *clusters) {
            shapes.push_back({c.addressBegin, c.addressEnd, c.begin, c.end, c.count, c.row});
        }
    }
    return shapes;
}

} // namespace vitrine::profiler
