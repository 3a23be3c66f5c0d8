// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/policy/group_advantages.h"

#include <cmath>
#include <unordered_map>

namespace vitrine::engine {

namespace {

constexpr double kLeastDeviation = 1e-6; ///< added: a group of equal rewards has advantages of 0

struct Group {
    double count = 0, mean = 0;
    double squares = 0; ///< of the differences from the mean
};

} // namespace

std::vector<float> groupAdvantages(std::span<const float> rewards, std::span<const std::int64_t> groups) {
    std::unordered_map<std::int64_t, Group> all;
    for (std::size_t row = 0; row < rewards.size(); ++row) {
        Group& group = all[groups[row]];
        group.count += 1;
        group.mean += static_cast<double>(rewards[row]);
    }
    for (auto& [name, group] : all) {
        group.mean /= group.count;
    }
    for (std::size_t row = 0; row < rewards.size(); ++row) {
        Group& group = all[groups[row]];
        const double difference = static_cast<double>(rewards[row]) - group.mean;
        group.squares += difference * difference;
    }
    std::vector<float> out;
    out.reserve(rewards.size());
    for (std::size_t row = 0; row < rewards.size(); ++row) {
        const Group& group = all[groups[row]];
        const double deviation = std::sqrt(group.squares / (group.count - 1));
        out.push_back(
            static_cast<float>((static_cast<double>(rewards[row]) - group.mean) / (deviation + kLeastDeviation)));
    }
    return out;
}

std::optional<std::size_t> rowAloneInGroup(std::span<const std::int64_t> groups) {
    std::unordered_map<std::int64_t, std::size_t> counts;
    for (const std::int64_t group : groups) {
        ++counts[group];
    }
    for (std::size_t row = 0; row < groups.size(); ++row) {
        if (counts[groups[row]] == 1) {
            return row;
        }
    }
    return std::nullopt;
}

} // namespace vitrine::engine
