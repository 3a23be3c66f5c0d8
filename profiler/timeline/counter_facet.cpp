// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/counter_facet.h"

#include <algorithm>
#include <mutex>

namespace vitrine::profiler {

using base::TimeNs;

namespace {

/// Borders of equal pieces of a time, without gaps.
std::vector<CounterColumn> columnsOf(const CounterIndex& index, TimeNs begin, TimeNs end, int columns) {
    std::vector<CounterColumn> out;
    out.reserve(static_cast<std::size_t>(columns));
    const auto border = [&](int column) {
        return begin + static_cast<TimeNs>(static_cast<__int128>(end - begin) * column / columns);
    };
    for (int column = 0; column < columns; ++column) {
        const TimeNs from = border(column);
        out.push_back(index.column(from, std::max(from + 1, border(column + 1))));
    }
    return out;
}

} // namespace

/// Indices over the samples, each made when it is first asked for.
struct CounterFacet::Lazy {
    std::mutex mutex;
    std::map<std::string, CounterIndex, std::less<>> indices;
};

CounterFacet::CounterFacet(Samples samples) : samples_(std::move(samples)), lazy_(std::make_unique<Lazy>()) {}

CounterFacet::~CounterFacet() = default;

std::vector<std::string> CounterFacet::names() const {
    std::vector<std::string> names;
    names.reserve(samples_.size());
    for (const auto& [name, samples] : samples_) {
        names.push_back(name);
    }
    return names;
}

std::vector<std::pair<TimeNs, double>> CounterFacet::samples(std::string_view name) const {
    std::vector<std::pair<TimeNs, double>> samples;
    if (const auto found = samples_.find(name); found != samples_.end()) {
        samples.reserve(found->second.size());
        for (const CounterSample& sample : found->second) {
            samples.emplace_back(sample.time, sample.value);
        }
    }
    return samples;
}

std::vector<CounterColumn> CounterFacet::columns(std::string_view name, TimeNs begin, TimeNs end, int columns) const {
    const auto samples = samples_.find(name);
    if (samples == samples_.end()) {
        return std::vector<CounterColumn>(static_cast<std::size_t>(columns));
    }
    const std::lock_guard lock(lazy_->mutex);
    auto index = lazy_->indices.find(name);
    if (index == lazy_->indices.end()) {
        const CounterIndex made({samples->second.begin(), samples->second.size()});
        index = lazy_->indices.emplace(std::string(name), made).first;
    }
    return columnsOf(index->second, begin, end, columns);
}

} // namespace vitrine::profiler
