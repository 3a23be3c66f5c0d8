// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/keep_parts.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "engine/quant/packing.h"

namespace vitrine::engine {
namespace {

/// The packed weights of a role in one layer.
struct KeepCell {
    std::uint64_t bytesAdded = 0;
    RoundingError error;

    void add(const KeepCell& other) {
        bytesAdded += other.bytesAdded;
        error.add(other.error);
    }
    double noise() const { return error.squaredValues > 0 ? error.squaredError / error.squaredValues : 0; }
};

using LayersOfRole = std::map<std::int32_t, KeepCell>;

std::map<std::string, LayersOfRole> packedCells(const PrecisionResult& result, std::size_t format) {
    std::map<std::string, LayersOfRole> roles;
    for (std::size_t i = 0; i < result.weights.size(); ++i) {
        const WeightEffect& effect = result.effect(format, i);
        if (!effect.kept) {
            roles[result.weights[i].role][result.weights[i].layer].add(
                {result.effect(0, i).bytes - effect.bytes, effect.error});
        }
    }
    return roles;
}

/// The noise from which on a cell is one of the worst.
double noiseOfWorst(const std::map<std::string, LayersOfRole>& roles) {
    std::vector<double> noises;
    for (const auto& [role, layers] : roles) {
        for (const auto& [layer, cell] : layers) {
            noises.push_back(cell.noise());
        }
    }
    const std::size_t place = std::min(kWorstCells, noises.size());
    std::ranges::sort(noises, std::greater{});
    return place == 0 ? 0 : noises[place - 1];
}

KeepEffect candidate(std::size_t format, KeepPart part, std::uint64_t bytesAdded) {
    KeepEffect effect;
    effect.format = format;
    effect.part = std::move(part);
    effect.bytesAdded = bytesAdded;
    return effect;
}

/// Cells from `least` on, with neighbours joined. None that is the whole role.
void addRuns(std::size_t format, const std::string& role, const LayersOfRole& layers, double least,
             std::size_t& cellsLeft, std::vector<KeepEffect>& candidates) {
    std::size_t joined = 0; // cells of the last candidate, where it may go on; 0: there is none
    std::int32_t last = -1;
    for (const auto& [layer, cell] : layers) {
        if (layer < 0 || cell.noise() < least || cellsLeft == 0) {
            joined = 0;
            continue;
        }
        --cellsLeft;
        if (joined > 0 && layer == last + 1) {
            candidates.back().part.lastLayer = layer;
            candidates.back().bytesAdded += cell.bytesAdded;
        } else {
            candidates.push_back(candidate(format, {role, layer, layer}, cell.bytesAdded));
            joined = 0;
        }
        last = layer;
        ++joined;
        if (joined == layers.size()) {
            candidates.pop_back();
        }
    }
}

std::string escaped(const std::string& name) {
    std::string text;
    for (const char c : name) {
        if (c == '.') {
            text += '\\';
        }
        text += c;
    }
    return text;
}

/// "down_proj". Of shared experts with the part before it, too, for other experts end alike.
std::string moduleEnding(const LabWeight& weight) {
    const std::string module(moduleOf(weight.name));
    std::size_t dot = module.rfind('.');
    if (weight.role.starts_with("shared") && dot != std::string::npos && dot > 0) {
        dot = module.rfind('.', dot - 1);
    }
    return dot == std::string::npos ? module : module.substr(dot + 1);
}

} // namespace

std::vector<KeepEffect> keepCandidates(const PrecisionResult& result, std::size_t format) {
    const std::map<std::string, LayersOfRole> roles = packedCells(result, format);
    std::vector<KeepEffect> candidates;
    for (const auto& [role, layers] : roles) {
        KeepCell all;
        for (const auto& [layer, cell] : layers) {
            all.add(cell);
        }
        candidates.push_back(candidate(format, {role}, all.bytesAdded));
    }
    const double least = noiseOfWorst(roles);
    std::size_t cellsLeft = kWorstCells;
    for (const auto& [role, layers] : roles) {
        addRuns(format, role, layers, least, cellsLeft, candidates);
    }
    return candidates;
}

std::string keepTitle(const KeepPart& part) {
    if (part.allLayers()) {
        return fmt::format("{}, all layers", part.role);
    }
    if (part.firstLayer == part.lastLayer) {
        return fmt::format("{}, layer {}", part.role, part.firstLayer);
    }
    return fmt::format("{}, layers {} {} {}", part.role, part.firstLayer,
                       part.lastLayer == part.firstLayer + 1 ? "and" : "to", part.lastLayer);
}

std::string keepPattern(const PrecisionResult& result, const KeepPart& part) {
    const auto weight = std::ranges::find(result.weights, part.role, &LabWeight::role);
    if (weight == result.weights.end()) {
        return {};
    }
    const std::string ending = moduleEnding(*weight);
    if (part.allLayers()) {
        return ending;
    }
    std::string layers;
    for (std::int32_t layer = part.firstLayer; layer <= part.lastLayer; ++layer) {
        layers += fmt::format("{}{}", layers.empty() ? "" : "|", layer);
    }
    return fmt::format("re:.*layers\\.({})\\.(.*\\.)?{}$", layers, escaped(ending));
}

} // namespace vitrine::engine
