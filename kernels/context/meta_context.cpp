// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/meta_context.h"

#include <algorithm>
#include <cmath>

namespace vitrine::kernels {

namespace {

base::TimeNs nanoseconds(double seconds) {
    return static_cast<base::TimeNs>(std::llround(seconds * 1e9));
}

} // namespace

void MetaContext::addCompute(double seconds) {
    compute_ += nanoseconds(seconds);
}

void MetaContext::addCopy(double seconds) {
    copy_ += nanoseconds(seconds);
}

void MetaContext::joinStreams() {
    compute_ = copy_ = std::max(compute_, copy_);
}

} // namespace vitrine::kernels
