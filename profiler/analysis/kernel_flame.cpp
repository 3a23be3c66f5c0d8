// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/kernel_flame.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "profiler/analysis/kernel_table.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"

namespace vitrine::profiler {

using base::ScopeKind;

namespace {

struct Stretch {
    base::TimeNs begin = 0, end = 0;
};

/// Sums by name along a path, in the order of their first appearance.
class FlameBuilder {
public:
    FlameBuilder() { nodes_.push_back({}); }

    std::int32_t child(std::int32_t parent, std::uint64_t key) {
        const auto [found, fresh] = children_.try_emplace({parent, key}, static_cast<std::int32_t>(nodes_.size()));
        if (fresh) {
            nodes_.push_back({parent, key, 0, 0});
        }
        return found->second;
    }
    void add(std::int32_t leaf, base::TimeNs time) {
        Node& node = nodes_[static_cast<std::size_t>(leaf)];
        node.time += time;
        ++node.calls;
    }

    struct Node {
        std::int32_t parent = -1;
        std::uint64_t key = 0;
        base::TimeNs time = 0;
        std::uint64_t calls = 0;
    };
    /// The nodes with what is below them; nothing can be added after that.
    const std::vector<Node>& finish() {
        for (std::size_t i = nodes_.size(); i-- > 1;) { // parents stand before their children
            Node& parent = nodes_[static_cast<std::size_t>(nodes_[i].parent)];
            parent.time += nodes_[i].time;
            parent.calls += nodes_[i].calls;
        }
        return nodes_;
    }
    bool empty() const { return nodes_.size() == 1; }

private:
    std::vector<Node> nodes_;
    std::map<std::pair<std::int32_t, std::uint64_t>, std::int32_t> children_;
};

/// What a key of a level is: the level in the upper half, a name or a number in the lower one.
enum Level : std::uint64_t { StepType = 1, Layer, Op, Kernel };
constexpr int kLevelShift = 32;

std::uint64_t keyOf(Level level, std::uint32_t value) {
    return static_cast<std::uint64_t>(level) << kLevelShift | value;
}

/// The node of a phase, layer and op. Millions of scopes stand in a few dozen places, most of them where the last one
/// did.
class FlamePaths {
public:
    explicit FlamePaths(FlameBuilder& builder) : builder_(builder) {}

    std::int32_t of(const ScopePlace& place) {
        const auto [found, fresh] = known_.try_emplace({place.phase, place.layer, place.op}, 0);
        if (fresh) {
            found->second = make(place);
        }
        return found->second;
    }

private:
    std::int32_t make(const ScopePlace& place) {
        std::int32_t at = builder_.child(0, keyOf(StepType, place.phase));
        if (place.layer >= 0) {
            at = builder_.child(at, keyOf(Layer, static_cast<std::uint32_t>(place.layer)));
        }
        return place.op != 0 ? builder_.child(at, keyOf(Op, place.op)) : at;
    }

    FlameBuilder& builder_;
    std::map<std::tuple<std::uint32_t, std::int32_t, std::uint32_t>, std::int32_t> known_;
};

std::string nameOf(const RunTimeline& timeline, std::uint64_t key) {
    const auto value = static_cast<std::uint32_t>(key);
    if (key >> kLevelShift == Layer) {
        return "layer " + std::to_string(value);
    }
    if (key >> kLevelShift == StepType && value == 0) {
        return "outside of phases";
    }
    return std::string(timeline.text(value));
}

void sumKernels(const RunTimeline& timeline, Stretch range, FlameBuilder& builder) {
    ScopePlaces places(timeline);
    FlamePaths paths(builder);
    std::uint32_t lane = 0;
    for (const base::SpanEvent& span : timeline.kernels().spans()) {
        if (lane == 0 && timeline.text(span.lane.value) == "Kernels") {
            lane = span.lane.value;
        }
        if (lane != 0 && span.lane.value == lane && range.begin <= span.begin && span.begin < range.end) {
            const std::int32_t op = paths.of(places.of(span.scope.value));
            builder.add(builder.child(op, keyOf(Kernel, span.name.value)), span.end - span.begin);
        }
    }
}

/// Calls `take` with each op that begins in the range, the place of its parent and its length. Ops inside ops are left
/// out: they would be counted twice.
template <typename Take> void forEachOp(const RunTimeline& timeline, Stretch range, Take take) {
    ScopePlaces places(timeline);
    const auto scopes = timeline.scopes().all();
    for (std::size_t i = scopesUpTo(timeline, range.begin - 1); i < scopes.size(); ++i) {
        const ScopeRow row = scopes[i];
        if (row.begin >= range.end) {
            break;
        }
        const ScopePlace outer = places.around(row);
        if (row.kind == ScopeKind::Op && outer.op == 0) {
            take(row, outer, scopeEnd(timeline, row) - row.begin);
        }
    }
}

void sumOps(const RunTimeline& timeline, Stretch range, FlameBuilder& builder) {
    FlamePaths paths(builder);
    forEachOp(timeline, range, [&](const ScopeRow& row, const ScopePlace& outer, base::TimeNs length) {
        builder.add(paths.of(placeInside(outer, row)), length);
    });
}

FlameTreePtr laidOut(const RunTimeline& timeline, FlameBuilder& builder, bool ofKernels) {
    auto flame = std::make_shared<FlameTree>();
    flame->ofKernels = ofKernels;
    const auto& nodes = builder.finish();
    std::vector<std::vector<std::int32_t>> children(nodes.size());
    for (std::size_t i = 1; i < nodes.size(); ++i) {
        children[static_cast<std::size_t>(nodes[i].parent)].push_back(static_cast<std::int32_t>(i));
    }
    struct Open {
        std::int32_t source, parent;
        double begin;
        int depth;
    };
    std::vector<Open> open{{0, -1, 0, 0}};
    for (std::size_t next = 0; next < open.size(); ++next) {
        const Open at = open[next];
        const auto& node = nodes[static_cast<std::size_t>(at.source)];
        FlameNode shown;
        shown.name = at.source == 0 ? (ofKernels ? "device time" : "time of ops") : nameOf(timeline, node.key);
        shown.parent = at.parent;
        shown.depth = at.depth;
        shown.begin = at.begin;
        shown.length = static_cast<double>(node.time);
        shown.calls = node.calls;
        if (node.key >> kLevelShift == Op) {
            shown.category = static_cast<std::int8_t>(categoryOfOp(timeline, static_cast<std::uint32_t>(node.key)));
        } else if (node.key >> kLevelShift == Kernel && at.parent >= 0) {
            shown.category = flame->nodes[static_cast<std::size_t>(at.parent)].category;
        }
        const auto self = static_cast<std::int32_t>(flame->nodes.size());
        flame->nodes.push_back(std::move(shown));
        flame->depth = std::max(flame->depth, at.depth + 1);
        auto& inner = children[static_cast<std::size_t>(at.source)];
        std::ranges::stable_sort(inner, [&nodes](std::int32_t a, std::int32_t b) {
            const auto &left = nodes[static_cast<std::size_t>(a)], &right = nodes[static_cast<std::size_t>(b)];
            // Layers are found by their number, all else by its time.
            const bool layers = left.key >> kLevelShift == Layer && right.key >> kLevelShift == Layer;
            return layers ? left.key < right.key : left.time > right.time;
        });
        double begin = at.begin;
        for (const std::int32_t child : inner) {
            open.push_back({child, self, begin, at.depth + 1});
            begin += static_cast<double>(nodes[static_cast<std::size_t>(child)].time);
        }
    }
    return flame;
}

} // namespace

FlameTreePtr flameTree(const RunTimeline& timeline, base::TimeNs begin, base::TimeNs end) {
    const Stretch range{begin, end};
    FlameBuilder kernels;
    sumKernels(timeline, range, kernels);
    if (!kernels.empty()) {
        return laidOut(timeline, kernels, true);
    }
    FlameBuilder ops;
    sumOps(timeline, range, ops);
    return laidOut(timeline, ops, false);
}

base::TimeNs timeOfOps(const RunTimeline& timeline, base::TimeNs begin, base::TimeNs end) {
    base::TimeNs time = 0;
    forEachOp(timeline, {begin, end},
              [&time](const ScopeRow&, const ScopePlace&, base::TimeNs length) { time += length; });
    return time;
}

} // namespace vitrine::profiler
