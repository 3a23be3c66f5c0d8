// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/op_rates.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/resource_path.h"
#include "base/strict_json.h"
#include "base/user_folder.h"
#include "kernels/core/device_traits.h"

namespace vitrine::kernels {

namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr double kJoinOctaves = 0.25;
constexpr double kOverlayOctaves = 1;
constexpr double kFarOctaves = 2;
constexpr double kMostWeight = 256;     ///< calls that a mean remembers: later ones keep counting
constexpr double kLatency = 2.5e-6;     ///< seconds in the roofline time of every call
constexpr std::size_t kNeighbours = 6;  ///< measured calls that an estimate looks at
constexpr double kNearest = 0.01;       ///< square octaves: keeps the weight of a call at the very place finite
constexpr std::size_t kMostCells = 512; ///< of one op; more are not kept

double octaves(double value) {
    return std::log2(std::max(value, 1.0));
}

/// Of the places of two calls, squared.
double distance(const OpCalls& a, const OpCalls& b) {
    const double bytes = octaves(a.bytes) - octaves(b.bytes), flops = octaves(a.flops) - octaves(b.flops);
    return bytes * bytes + flops * flops;
}

double rooflineOf(double bytes, double flops, const DeviceTraits& traits) {
    const double memory = traits.memoryBandwidth > 0 ? bytes / traits.memoryBandwidth : 0;
    const double rate = traits.flops(DType::BF16);
    return std::max(memory, rate > 0 ? flops / rate : 0) + kLatency;
}

void joinMean(double& mean, double value, double weight) {
    mean += (value - mean) * weight;
}

double numberOf(const json& value, const std::string& file, const std::string& field) {
    if (!value.is_number()) {
        throw base::BadInput(fmt::format("{}: {}: a number is expected", file, field));
    }
    const double number = value.get<double>();
    if (!(number >= 0) || number > 1e18) {
        throw base::BadInput(fmt::format("{}: {}: {} is not between 0 and 1e18", file, field, number));
    }
    return number;
}

const json& memberOf(const json& value, const char* key, const std::string& file, const std::string& field) {
    const auto found = value.is_object() ? value.find(key) : value.end();
    if (!value.is_object() || found == value.end()) {
        throw base::BadInput(fmt::format("{}: {}: is missing", file, field));
    }
    return *found;
}

OpCalls callsOf(const json& row, const std::string& file, const std::string& field) {
    if (!row.is_array() || row.size() != 4) {
        throw base::BadInput(fmt::format("{}: {}: [bytes, flops, seconds, calls] is expected", file, field));
    }
    return {numberOf(row[0], file, field), numberOf(row[1], file, field), numberOf(row[2], file, field),
            std::max(numberOf(row[3], file, field), 1.0)};
}

/// Four digits are more than measurements have; short numbers keep the file small.
double shortNumber(double value) {
    if (value == 0 || !std::isfinite(value)) {
        return 0;
    }
    const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
    return std::round(value * scale) / scale;
}

/// A CPU's rates are those of a number of threads.
std::string ratesName(const DeviceTraits& traits) {
    return traits.id == "cpu" ? fmt::format("cpu-{}", traits.multiprocessors) : traits.id;
}

OpRates shippedRates(const std::string& name) {
    std::string file;
    try {
        file = base::resourcePath("device-profiles/rates/" + name + ".json");
    } catch (const base::BadInput&) {
        return {}; // most devices have none
    }
    return OpRates::read(file);
}

} // namespace

void OpRates::add(std::string_view op, const OpCalls& calls) {
    if (!(calls.seconds > 0)) {
        return;
    }
    std::vector<OpCalls>& family = families_.try_emplace(std::string(op)).first->second;
    const auto near = std::ranges::min_element(family, {}, [&](const OpCalls& one) { return distance(one, calls); });
    if (near == family.end() || distance(*near, calls) > kJoinOctaves * kJoinOctaves) {
        if (family.size() < kMostCells) {
            family.push_back(calls);
        }
        return;
    }
    const double weight = calls.calls / (std::min(near->calls, kMostWeight) + calls.calls);
    joinMean(near->bytes, calls.bytes, weight);
    joinMean(near->flops, calls.flops, weight);
    joinMean(near->seconds, calls.seconds, weight);
    near->calls += calls.calls;
}

void OpRates::addSteps(LaunchKind kind, const LaunchCost& cost) {
    LaunchCost& mean = launches_[static_cast<std::size_t>(kind)];
    const double weight = cost.steps / (std::min(mean.steps, kMostWeight) + cost.steps);
    joinMean(mean.gap, cost.gap, weight);
    joinMean(mean.host, cost.host, weight);
    joinMean(mean.step, cost.step, weight);
    joinMean(mean.first, cost.first, weight);
    joinMean(mean.layers, cost.layers, weight);
    mean.steps += cost.steps;
}

void OpRates::addWake(std::string_view op, double seconds) {
    Wake& wake = wakes_.try_emplace(std::string(op)).first->second;
    wake.runs += 1;
    joinMean(wake.seconds, seconds, 1 / std::min(wake.runs, kMostWeight));
}

double OpRates::wake(std::string_view op) const {
    const auto found = wakes_.find(op);
    return found == wakes_.end() ? 0 : found->second.seconds;
}

void OpRates::join(const OpRates& other) {
    for (const auto& [op, family] : other.families_) {
        for (const OpCalls& one : family) {
            add(op, one);
        }
    }
    for (const auto& [op, wake] : other.wakes_) {
        Wake& mean = wakes_.try_emplace(op).first->second;
        joinMean(mean.seconds, wake.seconds, wake.runs / (std::min(mean.runs, kMostWeight) + wake.runs));
        mean.runs += wake.runs;
    }
    for (std::size_t kind = 0; kind < launches_.size(); ++kind) {
        if (other.launches_[kind].steps > 0) {
            addSteps(static_cast<LaunchKind>(kind), other.launches_[kind]);
        }
    }
}

void OpRates::scale(const DeviceTraits& from, const DeviceTraits& to) {
    for (auto& [op, family] : families_) {
        for (OpCalls& one : family) {
            one.seconds *= rooflineOf(one.bytes, one.flops, to) / rooflineOf(one.bytes, one.flops, from);
        }
    }
}

void OpRates::borrow(const OpRates& other) {
    for (const auto& [op, calls] : other.families_) {
        if (families_.try_emplace(op, calls).second) {
            borrowed_.insert(op);
            if (const auto wake = other.wakes_.find(op); wake != other.wakes_.end()) {
                wakes_.insert(*wake);
            }
        }
    }
    for (std::size_t kind = 0; kind < launches_.size(); ++kind) {
        if (launches_[kind].steps == 0) {
            launches_[kind] = other.launches_[kind];
        }
    }
}

void OpRates::overlay(const OpRates& newer) {
    for (const auto& [op, calls] : newer.families_) {
        borrowed_.erase(op);
        std::vector<OpCalls>& family = families_.try_emplace(op).first->second;
        std::erase_if(family, [&](const OpCalls& old) {
            return std::ranges::any_of(
                calls, [&](const OpCalls& one) { return distance(old, one) <= kOverlayOctaves * kOverlayOctaves; });
        });
        family.insert(family.end(), calls.begin(), calls.end());
    }
    for (const auto& [op, wake] : newer.wakes_) {
        wakes_[op] = wake;
    }
    for (std::size_t kind = 0; kind < launches_.size(); ++kind) {
        if (newer.launches_[kind].steps > 0) {
            launches_[kind] = newer.launches_[kind];
        }
    }
}

std::optional<RatedSeconds> OpRates::seconds(std::string_view op, std::uint64_t bytes, std::uint64_t flops,
                                             const DeviceTraits& traits) const {
    const auto found = families_.find(op);
    if (found == families_.end() || found->second.empty()) {
        return std::nullopt;
    }
    OpCalls asked;
    asked.bytes = static_cast<double>(bytes);
    asked.flops = static_cast<double>(flops);
    std::array<std::pair<double, const OpCalls*>, kNeighbours> nearest{};
    std::size_t count = 0; // nearest first
    for (const OpCalls& one : found->second) {
        std::pair<double, const OpCalls*> item{distance(one, asked), &one};
        for (std::size_t i = 0; i < count; ++i) {
            if (item.first < nearest[i].first) {
                std::swap(item, nearest[i]);
            }
        }
        if (count < kNeighbours) {
            nearest[count++] = item;
        }
    }
    double sum = 0, weights = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const OpCalls& one = *nearest[i].second;
        const double weight = 1 / ((nearest[i].first + kNearest) * (nearest[i].first + kNearest));
        sum += weight * std::log(one.seconds / rooflineOf(one.bytes, one.flops, traits));
        weights += weight;
    }
    const bool far = nearest[0].first > kFarOctaves * kFarOctaves || borrowed_.contains(op);
    return RatedSeconds{rooflineOf(asked.bytes, asked.flops, traits) * std::exp(sum / weights), far};
}

json OpRates::toJson() const {
    json launches = json::object(), ops = json::object();
    for (std::size_t kind = 0; kind < launches_.size(); ++kind) {
        const LaunchCost& cost = launches_[kind];
        if (cost.steps > 0) {
            launches[std::string(kLaunchKindNames[kind])] = {{"gap", shortNumber(cost.gap)},
                                                             {"host", shortNumber(cost.host)},
                                                             {"step", shortNumber(cost.step)},
                                                             {"first", shortNumber(cost.first)},
                                                             {"steps", cost.steps}};
            if (cost.layers > 0) {
                launches[std::string(kLaunchKindNames[kind])]["layers"] = shortNumber(cost.layers);
            }
        }
    }
    for (const auto& [op, family] : families_) {
        json rows = json::array();
        for (const OpCalls& one : family) {
            rows.push_back({shortNumber(one.bytes), shortNumber(one.flops), shortNumber(one.seconds), one.calls});
        }
        ops[op] = std::move(rows);
    }
    json out = {{"format", kFormat}, {"launch", std::move(launches)}, {"ops", std::move(ops)}};
    for (const auto& [op, wake] : wakes_) {
        out["wake"][op] = {shortNumber(wake.seconds), wake.runs};
    }
    return out;
}

void OpRates::readWakes(const json& value, const std::string& file, Wakes& wakes) {
    if (!value.is_object()) {
        throw base::BadInput(file + ": wake: an object is expected");
    }
    for (const auto& [op, row] : value.items()) {
        const std::string field = "wake." + op;
        if (!row.is_array() || row.size() != 2) {
            throw base::BadInput(fmt::format("{}: {}: [seconds, runs] is expected", file, field));
        }
        wakes[op] = {numberOf(row[0], file, field), std::max(numberOf(row[1], file, field), 1.0)};
    }
}

OpRates OpRates::fromJson(const json& value, const std::string& file) {
    const json& format = memberOf(value, "format", file, "format");
    if (format != kFormat) {
        throw base::BadInput(fmt::format("{}: format: {} is expected; another version wrote it", file, kFormat));
    }
    OpRates rates;
    const json& launches = memberOf(value, "launch", file, "launch");
    for (std::size_t kind = 0; kind < kLaunchKindNames.size(); ++kind) {
        const std::string name(kLaunchKindNames[kind]);
        if (!launches.is_object() || !launches.contains(name)) {
            continue;
        }
        const auto number = [&](const char* key) {
            const std::string field = fmt::format("launch.{}.{}", name, key);
            return numberOf(memberOf(launches[name], key, file, field), file, field);
        };
        rates.launches_[kind] = {number("gap"), number("host"), number("step"), number("first"), number("steps")};
        rates.launches_[kind].layers =
            launches[name].contains("layers") ? number("layers") : 0; // older files have none
    }
    const json& ops = memberOf(value, "ops", file, "ops");
    if (!ops.is_object()) {
        throw base::BadInput(file + ": ops: an object is expected");
    }
    for (const auto& [op, rows] : ops.items()) {
        if (!rows.is_array() || rows.size() > kMostCells) {
            throw base::BadInput(fmt::format("{}: ops.{}: at most {} rows are expected", file, op, kMostCells));
        }
        std::vector<OpCalls>& family = rates.families_[op];
        for (const json& row : rows) {
            family.push_back(callsOf(row, file, "ops." + op));
            if (!(family.back().seconds > 0)) {
                throw base::BadInput(fmt::format("{}: ops.{}: seconds above 0 are expected", file, op));
            }
        }
    }
    if (value.contains("wake")) { // older files have none
        readWakes(value["wake"], file, rates.wakes_);
    }
    return rates;
}

OpRates OpRates::read(const std::string& file) {
    std::error_code error;
    if (file.empty() || !std::filesystem::exists(file, error)) {
        return {};
    }
    return fromJson(base::readStrictJson(file, {.maxBytes = std::size_t{8} << 20, .maxDepth = 8}), file);
}

std::string ownRatesFile(const DeviceTraits& traits) {
    const std::string folder = base::userCacheFolder();
    return folder.empty() || traits.id.empty() ? std::string() : folder + "/op-rates/" + ratesName(traits) + ".json";
}

void addOpRates(DeviceTraits& traits) {
    OpRates rates = traits.ratesFile.empty() ? shippedRates(ratesName(traits)) : OpRates::read(traits.ratesFile);
    const bool scaled = rates.empty();
    if (!traits.ratesOf.empty() && traits.ratesOf != traits.id) {
        OpRates others = shippedRates(traits.ratesOf);
        others.scale(loadDeviceProfile(traits.ratesOf), traits);
        if (scaled) {
            rates = std::move(others);
        } else {
            rates.borrow(others);
        }
    }
    const bool hasShipped = !rates.empty();
    bool hasOwn = false;
    try {
        const OpRates own = OpRates::read(ownRatesFile(traits));
        hasOwn = !own.empty();
        rates.overlay(own);
    } catch (const base::Error& error) {
        base::logWarning(fmt::format("{}; times are planned without it", error.what()));
    }
    if (!rates.empty()) {
        traits.ratesFrom = hasOwn && hasShipped ? RatesFrom::Both
                           : hasOwn             ? RatesFrom::ThisMachine
                           : scaled             ? RatesFrom::Scaled
                                                : RatesFrom::Shipped;
        traits.rates = std::make_shared<const OpRates>(std::move(rates));
    }
}

} // namespace vitrine::kernels
