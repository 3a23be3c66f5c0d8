// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/equal_work.h"

#include "kernels/context/context.h"

namespace vitrine::kernels {

namespace {

MetaContext::Times minus(const MetaContext::Times& a, const MetaContext::Times& b) {
    return {a.compute - b.compute, a.copy - b.copy,   a.host - b.host,          a.ops - b.ops,
            a.far - b.far,         a.sheet - b.sheet, a.exchanges - b.exchanges};
}

bool same(const MetaContext::Times& a, const MetaContext::Times& b) {
    return a.compute == b.compute && a.copy == b.copy && a.host == b.host;
}

} // namespace

bool jumpsEqualWork(Context& context) {
    const MetaContext* const meta = context.meta();
    return meta != nullptr && meta->unwatched();
}

EqualWork::EqualWork(Context& context) : meta_(jumpsEqualWork(context) ? context.meta() : nullptr) {}

void EqualWork::run(int kind, const std::function<void()>& work) {
    if (meta_ == nullptr) {
        work();
        return;
    }
    const auto known = known_.find(kind);
    const MetaContext::Times begin = meta_->times();
    if (known != known_.end() && known->second.twice) {
        meta_->passAgain(minus(begin, known->second.took), 1);
        return;
    }
    work();
    const MetaContext::Times took = minus(meta_->times(), begin);
    known_[kind] = {took, known != known_.end() && same(took, known->second.took)};
}

} // namespace vitrine::kernels
