// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What Sample::drawLogprobs has to be, in float64 and by brute force: every token is sorted.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "kernels/ops/sampling/sample.h"

namespace vitrine::kernels::testing {

/// The two log-probabilities of one token.
struct DrawReference {
    double drawn = 0;
    double tempered = 0;
};

/// Log of the sum of e^(value / temperature).
inline double logSumOf(const std::vector<double>& values, double temperature) {
    const double maximum = *std::ranges::max_element(values);
    double sum = 0;
    for (const double value : values) {
        sum += std::exp((value - maximum) / temperature);
    }
    return maximum / temperature + std::log(sum);
}

/// The logits after penalties, biases and forbidden ids.
inline std::vector<double> changedLogits(const std::vector<double>& logits, const SampleParameters& row) {
    std::vector<double> values = logits;
    const auto at = [&](std::int32_t id) -> double& { return values.at(static_cast<std::size_t>(id)); };
    for (const std::int32_t id : std::set<std::int32_t>(row.history, row.history + row.historyLength)) {
        const auto penalty = static_cast<double>(row.repetitionPenalty);
        at(id) = at(id) < 0 ? at(id) * penalty : at(id) / penalty;
    }
    std::map<std::int32_t, int> chosen;
    for (std::int64_t i = row.promptTokens; i < row.historyLength; ++i) {
        ++chosen[row.history[i]];
    }
    for (const auto& [id, times] : chosen) {
        at(id) -= static_cast<double>(row.frequencyPenalty) * times + static_cast<double>(row.presencePenalty);
    }
    for (const LogitBias& each : row.bias) {
        at(each.id) += static_cast<double>(each.bias);
    }
    for (std::int64_t i = 0; i < row.forbiddenCount; ++i) {
        at(row.forbidden[i]) = -std::numeric_limits<double>::infinity();
    }
    return values;
}

/// The tokens that top-k, top-p and min-p leave, best first; `values` are divided by the temperature.
inline std::vector<std::int32_t> candidatesOf(const std::vector<double>& values, const SampleParameters& row) {
    std::vector<std::int32_t> ids(values.size());
    std::iota(ids.begin(), ids.end(), 0);
    const auto at = [&](std::int32_t id) { return values[static_cast<std::size_t>(id)]; };
    std::ranges::stable_sort(ids, [&](std::int32_t a, std::int32_t b) { return at(a) > at(b); });
    const double best = at(ids[0]);
    if (row.topK > 0) {
        ids.resize(std::min(ids.size(), static_cast<std::size_t>(row.topK)));
    }
    if (row.topP < 1) {
        double total = 0;
        for (const std::int32_t id : ids) {
            total += std::exp(at(id) - best);
        }
        double before = 0;
        std::size_t kept = 0;
        while (kept < ids.size() && before < static_cast<double>(row.topP) * total) {
            before += std::exp(at(ids[kept++]) - best);
        }
        ids.resize(std::max<std::size_t>(1, kept));
    }
    std::erase_if(ids, [&](std::int32_t id) { return std::exp(at(id) - best) < static_cast<double>(row.minP); });
    return ids;
}

inline DrawReference drawReference(const std::vector<double>& logits, const SampleParameters& row, std::int32_t id) {
    const double temperature = row.temperature > 0 ? static_cast<double>(row.temperature) : 1;
    DrawReference out;
    out.tempered = logits.at(static_cast<std::size_t>(id)) / temperature - logSumOf(logits, temperature);
    if (row.temperature == 0 || row.topK == 1) {
        return out;
    }
    std::vector<double> values = changedLogits(logits, row);
    for (double& value : values) {
        value /= temperature;
    }
    std::vector<double> kept;
    bool holds = false;
    for (const std::int32_t candidate : candidatesOf(values, row)) {
        kept.push_back(values[static_cast<std::size_t>(candidate)]);
        holds = holds || candidate == id;
    }
    out.drawn =
        holds ? values[static_cast<std::size_t>(id)] - logSumOf(kept, 1) : -std::numeric_limits<double>::infinity();
    return out;
}

/// Rows of every mixture of filters and penalties. The lists that they view belong to this object.
class MixedRows {
public:
    MixedRows(std::int64_t vocab, std::int64_t rows, std::uint32_t seed)
        : history_{1, 5, 5, 77, 300, static_cast<std::int32_t>(vocab - 1)},
          bias_{{3, 8}, {77, -1.5F}, {static_cast<std::int32_t>(vocab / 2), 4}} {
        std::mt19937 random(seed);
        const auto pick = [&](auto... choices) {
            const std::array all{static_cast<double>(choices)...};
            return all[random() % all.size()];
        };
        parameters_.resize(static_cast<std::size_t>(rows));
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            SampleParameters& row = parameters_[i];
            row.temperature = static_cast<float>(pick(0, 0.3, 0.7, 1, 1, 1.4));
            row.topK = static_cast<std::int32_t>(pick(0, 0, 1, 5, 50, 600));
            row.topP = static_cast<float>(pick(1, 1, 0.95, 0.5));
            row.minP = static_cast<float>(pick(0, 0, 0.02));
            row.repetitionPenalty = static_cast<float>(pick(1, 1.3));
            row.frequencyPenalty = static_cast<float>(pick(0, 0, 0.7, -2));
            row.presencePenalty = static_cast<float>(pick(0, 0, 1.5));
            row.promptTokens = static_cast<std::int64_t>(i % 4);
            row.bias = std::span(bias_).first(i % 4);
            row.seed = random();
            row.request = static_cast<std::uint32_t>(i);
            row.position = static_cast<std::int64_t>(random() % 100000);
            row.history = history_.data();
            row.historyLength = static_cast<std::int64_t>(history_.size());
            row.forbidden = forbidden_.data();
            row.forbiddenCount = static_cast<std::int64_t>(i % 3);
        }
    }

    const std::vector<SampleParameters>& parameters() const { return parameters_; }

private:
    std::vector<std::int32_t> history_;
    std::vector<std::int32_t> forbidden_{0, 2};
    std::vector<LogitBias> bias_;
    std::vector<SampleParameters> parameters_;
};

} // namespace vitrine::kernels::testing
