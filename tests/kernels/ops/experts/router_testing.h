// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Softmax by its definition, and a router with a loss of its weights, for tests of routers and their gradients.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/ops/experts/moe.h"
#include "tests/kernels/ops/common/gradient_testing.h"

namespace vitrine::kernels::testing {

inline std::vector<double> softmax(const std::vector<double>& logits) {
    const double maximum = *std::max_element(logits.begin(), logits.end());
    std::vector<double> out;
    double sum = 0;
    for (const double logit : logits) {
        out.push_back(std::exp(logit - maximum));
        sum += out.back();
    }
    for (double& value : out) {
        value /= sum;
    }
    return out;
}

/// RouterTopKBackward in float64 with the sum of all logits' shares of `byProbability` and of `byWeight` as the loss.
struct RouterScene {
    RouterScene(std::mt19937& random, std::int64_t experts, std::int64_t k, RouterOrder order, bool normalize)
        : logits(DType::F64, Shape{kTokens, experts}), ids(DType::I32, Shape{kTokens, k}),
          weights(DType::F32, Shape{kTokens, k}), byWeight(DType::F64, Shape{kTokens, k}),
          byProbability(DType::F32, Shape{experts}), gradLogits(DType::F64, Shape{kTokens, experts}, experts + 3),
          forward{logits, ids, weights, order, normalize} {
        logits.fillNormal(random, 2);
        byWeight.fillNormal(random);
        byProbability.fillNormal(random);
    }
    /// The choice stays what the forward pass made it: it has no gradient.
    double loss(bool balanced) const {
        const std::vector<double> all = logits.values(), chosenIds = ids.values(), grads = byWeight.values();
        const std::vector<double> balance = byProbability.values();
        const std::size_t experts = balance.size(), k = chosenIds.size() / kTokens;
        double sum = 0;
        for (std::size_t t = 0; t < kTokens; ++t) {
            const auto first = all.begin() + static_cast<std::ptrdiff_t>(t * experts);
            const std::vector<double> row(first, first + static_cast<std::ptrdiff_t>(experts));
            const std::vector<double> shares = softmax(row);
            const bool chooseFirst = forward.order == RouterOrder::TopKThenSoftmax;
            std::vector<double> chosen;
            for (std::size_t j = 0; j < k; ++j) {
                const auto id = static_cast<std::size_t>(chosenIds[t * k + j]);
                chosen.push_back(chooseFirst ? row[id] : shares[id]);
            }
            chosen = chooseFirst ? softmax(chosen) : chosen;
            const bool divides = !chooseFirst && forward.normalize;
            const double total = divides ? std::accumulate(chosen.begin(), chosen.end(), 0.0) : 1;
            for (std::size_t j = 0; j < k; ++j) {
                sum += grads[t * k + j] * chosen[j] / total;
            }
            for (std::size_t e = 0; balanced && e < experts; ++e) {
                sum += balance[e] * shares[e];
            }
        }
        return sum;
    }

    static constexpr std::size_t kTokens = 5;
    TestTensor logits, ids, weights, byWeight, byProbability, gradLogits;
    RouterTopK forward;
};

} // namespace vitrine::kernels::testing
