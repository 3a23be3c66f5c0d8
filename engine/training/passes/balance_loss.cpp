// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/balance_loss.h"

#include <vector>

#include "engine/training/parameters/host_floats.h"
#include "kernels/context/context.h"
#include "kernels/ops/experts/router_shares.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/rowwise/sum_rows.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;

BalanceLoss::BalanceLoss(kernels::Context& context, std::int64_t experts, double coefficient)
    : context_(context), experts_(experts), coefficient_(coefficient),
      sums_(context.memory().general(), MemoryCategory::Other, "router_shares.sum", DType::F32, Shape{2 * experts}),
      gradient_(context.memory().general(), MemoryCategory::Gradients, "router_probabilities.gradient", DType::F32,
                Shape{experts}) {}

void BalanceLoss::begin() {
    pairs_ = 0;
    context_.run(kernels::SetZero{sums_.view()});
}

RouterObserver BalanceLoss::observer(const OpRunner& runner) {
    return {[this, &runner](const kernels::RouterTopK& done) { add(runner, done); }, true};
}

void BalanceLoss::add(const OpRunner& runner, const kernels::RouterTopK& done) {
    const std::int64_t tokens = done.logits.shape[0];
    const Tensor shares =
        runner.make(MemoryCategory::Activations, "router_shares", DType::F32, Shape{tokens, 2 * experts_});
    runner.run(kernels::RouterShares{done, shares.view()});
    runner.run(kernels::SumRows{shares.view(), sums_.view(), true, {}});
    pairs_ += tokens;
}

double BalanceLoss::finish(double share) {
    const std::vector<float> sums = downloadFloats(context_, sums_.view());
    const auto pairs = static_cast<double>(pairs_);
    const double scale = static_cast<double>(experts_) / (pairs * pairs);
    double loss = 0;
    std::vector<float> gradient;
    gradient.reserve(static_cast<std::size_t>(experts_));
    for (std::size_t e = 0; e < static_cast<std::size_t>(experts_); ++e) {
        const double chosen = sums[e + static_cast<std::size_t>(experts_)];
        loss += scale * chosen * static_cast<double>(sums[e]);
        gradient.push_back(static_cast<float>(coefficient_ * share * scale * chosen));
    }
    context_.upload(gradient.data(), gradient_.view().data, gradient.size() * sizeof(float));
    return loss;
}

} // namespace vitrine::engine
