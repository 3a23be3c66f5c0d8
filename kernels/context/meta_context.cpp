// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/meta_context.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vitrine::kernels {

namespace {

base::TimeNs nanoseconds(double seconds) {
    return static_cast<base::TimeNs>(std::llround(seconds * 1e9));
}

} // namespace

void MetaContext::addCompute(double seconds) {
    compute_ += nanoseconds(seconds);
}

OpSeconds MetaContext::secondsOf(std::string_view op, const Cost& cost) {
    const Call call{op.data(), cost.rateClass, cost.bytes(), cost.flops};
    if (const auto known = measured_.find(call); known != measured_.end()) {
        return {known->second, true};
    }
    const OpSeconds out = opSeconds(op, cost, traits_);
    if (out.measured) {
        measured_.emplace(call, out.seconds);
    }
    return out;
}

void MetaContext::addOp(double seconds) {
    const LaunchCost& cost = traits_.rates->launch(kind_);
    host_ += nanoseconds(cost.host);
    compute_ = std::max(compute_ + nanoseconds(cost.gap), host_) + nanoseconds(seconds);
}

void MetaContext::beginStep(LaunchKind kind) {
    kind_ = kind;
    if (traits_.rates != nullptr) {
        compute_ += nanoseconds(traits_.rates->launch(kind).step);
    }
}

void MetaContext::passFirstUse(LaunchKind kind) {
    if (traits_.rates != nullptr && !std::exchange(begun_[static_cast<std::size_t>(kind)], true)) {
        compute_ += nanoseconds(traits_.rates->launch(kind).first);
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
}

void MetaContext::joinStreams() {
    compute_ = copy_ = host_ = std::max(compute_, copy_);
}

} // namespace vitrine::kernels
