// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/meta_context.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace vitrine::kernels {

namespace {

base::TimeNs nanoseconds(double seconds) {
    return static_cast<base::TimeNs>(std::llround(seconds * 1e9));
}

using OpTimes = std::vector<std::pair<std::string_view, base::TimeNs>>;

/// Names are compared by their place: there are few, and every op has its own.
void addTo(OpTimes& sums, std::string_view op, base::TimeNs time) {
    for (auto& [name, sum] : sums) {
        if (name.data() == op.data()) {
            sum += time;
            return;
        }
    }
    sums.emplace_back(op, time);
}

std::vector<std::string_view> longestFirst(OpTimes sums) {
    std::ranges::stable_sort(sums, std::ranges::greater(), &OpTimes::value_type::second);
    std::vector<std::string_view> names;
    for (const auto& [name, time] : sums) {
        names.push_back(name);
    }
    return names;
}

} // namespace

void MetaContext::addCompute(double seconds) {
    compute_ += nanoseconds(seconds);
}

void MetaContext::addOnce(double seconds) {
    addCompute(seconds);
    once_ += nanoseconds(seconds);
}

OpSeconds MetaContext::secondsOf(std::string_view op, const Cost& cost) {
    const Call call{op.data(), cost.rateClass, cost.bytes(), cost.flops, cost.ranks};
    if (const auto known = measured_.find(call); known != measured_.end()) {
        return known->second;
    }
    OpSeconds out = opSeconds(op, cost, traits_);
    const double wake = std::exchange(out.wake, 0);
    if (out.measured) {
        measured_.emplace(call, out);
    }
    if (wake > 0 && kind_ == LaunchKind::Launched && awake_.emplace(op.data(), cost.rateClass).second) {
        out.wake = wake;
    }
    return out;
}

void MetaContext::addOp(double seconds) {
    const LaunchCost& cost = traits_.rates->launch(kind_);
    host_ += nanoseconds(cost.host);
    compute_ = std::max(compute_ + nanoseconds(cost.gap), host_) + nanoseconds(seconds);
}

void MetaContext::charge(std::string_view op, const OpSeconds& time) {
    if (traits_.rates == nullptr) {
        addCompute(time.seconds);
        return;
    }
    const base::TimeNs took = nanoseconds(time.seconds);
    ops_ += took;
    if (!time.measured) {
        sheet_ += took;
        addTo(sheetOps_, op, took);
        addCompute(time.seconds);
        return;
    }
    if (time.far) {
        far_ += took;
        addTo(farOps_, op, took);
    }
    if (time.wake > 0) { // a library that wakes up waits for what was launched before
        host_ = std::max(host_, compute_) + nanoseconds(time.wake);
        once_ += nanoseconds(time.wake);
    }
    addOp(time.seconds);
}

void MetaContext::addExchange(double seconds) {
    exchanges_ += nanoseconds(seconds);
}

PricedTime MetaContext::pricedTime() const {
    return {ops_, far_, sheet_, longestFirst(farOps_), longestFirst(sheetOps_)};
}

void MetaContext::beginStep(LaunchKind kind) {
    kind_ = kind;
    if (traits_.rates != nullptr) {
        compute_ += nanoseconds(traits_.rates->launch(kind).step);
    }
}

void MetaContext::passFirstUse(LaunchKind kind, std::int64_t layers, std::int64_t rows) {
    constexpr double kOfLaterRows = 0.5; // measured on an H200 for 1 to 48 rows: 0.3 to 0.8
    const bool later = std::ranges::any_of(begun_, [&](const auto& step) { return step.first == kind; });
    if (traits_.rates != nullptr && begun_.emplace(kind, rows).second) {
        const LaunchCost& cost = traits_.rates->launch(kind);
        const double most = cost.layers > 0 ? cost.first * static_cast<double>(layers) / cost.layers : cost.first;
        addOnce(later ? most * kOfLaterRows : most);
        joinStreams();
    }
}

void MetaContext::addCopy(double seconds) {
    copy_ += nanoseconds(seconds);
}

void MetaContext::passAgain(const Times& begin, std::int64_t times) {
    compute_ += (compute_ - begin.compute) * times;
    copy_ += (copy_ - begin.copy) * times;
    host_ += (host_ - begin.host) * times;
    ops_ += (ops_ - begin.ops) * times;
    far_ += (far_ - begin.far) * times;
    sheet_ += (sheet_ - begin.sheet) * times;
    exchanges_ += (exchanges_ - begin.exchanges) * times;
}

void MetaContext::joinStreams() {
    compute_ = copy_ = host_ = std::max(compute_, copy_);
}

} // namespace vitrine::kernels
