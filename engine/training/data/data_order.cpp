// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/data_order.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <limits>

#include "base/error.h"
#include "engine/training/data/permutation.h"

namespace vitrine::engine {

namespace {

/// Positions in the stream of sequences stay below 2^63 with it, whatever the step.
constexpr std::int64_t kMostSequencesOfAStep = std::int64_t{1} << 20;
constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;

} // namespace

DataOrder::DataOrder(const DataOrderOptions& options) : options_(options) {
    const bool good = options.sequences >= 1 && options.microBatchSize >= 1 && options.microBatches >= 1 &&
                      options.microBatchSize <= kMostSequencesOfAStep / options.microBatches && options.epochs >= 0 &&
                      options.epochs <= std::numeric_limits<std::int64_t>::max() / 2 / options.sequences;
    if (!good) {
        throw base::Internal(fmt::format("order of {} sequences in {} micro-batches of {}, {} epochs",
                                         options.sequences, options.microBatches, options.microBatchSize,
                                         options.epochs));
    }
}

const std::vector<std::int64_t>& DataOrder::orderOf(std::int64_t epoch) {
    if (epoch != epoch_) {
        order_ = randomPermutation(options_.sequences, seedKey(options_.seed, SeedStream::DataOrder),
                                   static_cast<std::uint64_t>(epoch));
        epoch_ = epoch;
    }
    return order_;
}

std::vector<std::int64_t> DataOrder::indices(std::int64_t step, std::int64_t microBatch) {
    if (step < 0 || step >= kMostSteps || microBatch < 0 || microBatch >= options_.microBatches) {
        throw base::Internal(fmt::format("micro-batch {} of step {}", microBatch, step));
    }
    const std::int64_t begin = step * perStep() + microBatch * options_.microBatchSize;
    std::int64_t end = begin + options_.microBatchSize;
    if (options_.epochs > 0) {
        end = std::min(end, options_.epochs * options_.sequences);
    }
    std::vector<std::int64_t> out;
    for (std::int64_t position = begin; position < end; ++position) {
        const std::int64_t place = position % options_.sequences;
        out.push_back(options_.shuffle ? orderOf(position / options_.sequences)[static_cast<std::size_t>(place)]
                                       : place);
    }
    return out;
}

std::int64_t DataOrder::steps() const {
    return (options_.epochs * options_.sequences + perStep() - 1) / perStep();
}

double DataOrder::epochAfter(std::int64_t steps) const {
    const double epoch =
        static_cast<double>(steps) * static_cast<double>(perStep()) / static_cast<double>(options_.sequences);
    return options_.epochs > 0 ? std::min(epoch, static_cast<double>(options_.epochs)) : epoch;
}

} // namespace vitrine::engine
