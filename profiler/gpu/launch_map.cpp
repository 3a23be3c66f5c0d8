// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/launch_map.h"

#include <algorithm>

namespace vitrine::profiler {

namespace {

/// Calls whose scope is remembered: the driver numbers every call, a flush comes several times a second.
constexpr std::size_t kLaunches = std::size_t{1} << 19;
/// Steps whose records may still be on their way.
constexpr std::size_t kRenamedSteps = 4096;
constexpr std::size_t kDestroyedNodes = std::size_t{1} << 16;
constexpr std::uint64_t kNoStep = std::numeric_limits<std::uint64_t>::max();

} // namespace

LaunchMap::LaunchMap() : launches_(kLaunches) {}

void LaunchMap::beginRun() {
    const std::lock_guard lock(mutex_);
    std::ranges::fill(launches_, Launch{});
    renamed_.clear();
    newNodes_.clear();
    open_ = kNoStep;
}

void LaunchMap::stepBegins(base::ScopeId step) {
    const std::lock_guard lock(mutex_);
    open_ = step.value;
    newNodes_.clear();
}

void LaunchMap::stepEnded(base::ScopeId step, std::span<const base::StepScope> scopes) {
    const std::lock_guard lock(mutex_);
    open_ = kNoStep;
    if (scopes.empty()) {
        newNodes_.clear();
        return;
    }
    Renamed renamed;
    renamed.scopes.assign(scopes.begin(), scopes.end());
    std::ranges::sort(renamed.scopes, {}, [](const base::StepScope& scope) { return scope.ran.value; });
    renamed.first = step.value;
    renamed.last = renamed.scopes.back().ran.value;
    for (const std::uint64_t id : newNodes_) {
        const auto node = nodes_.find(id);
        if (node == nodes_.end()) {
            continue;
        }
        const auto scope = std::ranges::lower_bound(renamed.scopes, node->second.scope.value, {},
                                                    [](const base::StepScope& s) { return s.ran.value; });
        if (scope != renamed.scopes.end() && scope->ran == node->second.scope) {
            node->second.relative = scope->relative;
        }
    }
    newNodes_.clear();
    if (renamed.scopes.front().recorded == renamed.scopes.front().ran) {
        return; // the first of its kind is recorded as it ran
    }
    renamed_.push_back(std::move(renamed));
    if (renamed_.size() > kRenamedSteps) {
        renamed_.pop_front();
    }
}

void LaunchMap::launched(std::uint32_t correlation, base::ScopeId scope) {
    const std::lock_guard lock(mutex_);
    launches_[correlation % kLaunches] = {correlation, scope};
}

void LaunchMap::nodeCreated(std::uint64_t node, base::ScopeId scope) {
    const std::lock_guard lock(mutex_);
    nodes_[node] = {scope, std::nullopt};
    if (open_ != kNoStep) {
        newNodes_.push_back(node);
    }
}

void LaunchMap::nodeCloned(std::uint64_t original, std::uint64_t clone) {
    const std::lock_guard lock(mutex_);
    const auto known = nodes_.find(original);
    if (known == nodes_.end()) {
        return;
    }
    const Node node = known->second;
    nodes_[clone] = node;
    if (open_ != kNoStep && !node.relative) {
        newNodes_.push_back(clone);
    }
}

void LaunchMap::nodeDestroyed(std::uint64_t node) {
    const std::lock_guard lock(mutex_);
    // Records of its last replays may be on their way.
    destroyed_.push_back(node);
    if (destroyed_.size() > kDestroyedNodes) {
        nodes_.erase(destroyed_.front());
        destroyed_.pop_front();
    }
}

base::ScopeId LaunchMap::idInTrace(base::ScopeId ran) const {
    auto after = std::ranges::upper_bound(renamed_, ran.value, {}, &Renamed::first);
    if (after == renamed_.begin()) {
        return ran;
    }
    const Renamed& step = *--after;
    if (ran.value > step.last) {
        return ran;
    }
    const auto scope =
        std::ranges::lower_bound(step.scopes, ran.value, {}, [](const base::StepScope& s) { return s.ran.value; });
    return scope != step.scopes.end() && scope->ran == ran ? scope->recorded : ran;
}

std::optional<base::ScopeId> LaunchMap::scopeOf(std::uint32_t correlation, std::uint64_t node) const {
    const std::lock_guard lock(mutex_);
    const Launch& launch = launches_[correlation % kLaunches];
    if (launch.correlation != correlation || correlation == 0) {
        return base::ScopeId{};
    }
    if (launch.scope.value >= open_) {
        return std::nullopt;
    }
    const base::ScopeId scope = idInTrace(launch.scope);
    if (node == 0) {
        return scope;
    }
    const auto known = nodes_.find(node);
    return known == nodes_.end() || !known->second.relative ? scope
                                                            : base::ScopeId{scope.value + *known->second.relative};
}

} // namespace vitrine::profiler
