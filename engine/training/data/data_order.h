// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which sequences a step of the optimizer takes. The order is a pure function of the options and the step, so a run
// that is resumed needs nothing but the number of its step.

#include <cstdint>
#include <vector>

namespace vitrine::engine {

struct DataOrderOptions {
    std::int64_t sequences = 0;      ///< there are so many, at least 1
    std::int64_t microBatchSize = 1; ///< sequences of one forward and backward pass
    std::int64_t microBatches = 1;   ///< passes of one step
    std::int64_t epochs = 0;         ///< the data end after so many; 0: they never end
    bool shuffle = true;             ///< another random order in each epoch; false: the order of the file
    std::uint64_t seed = 0;
};

/// Epochs follow each other without a gap: a step may take the last sequences of one epoch and the first ones of the
/// next. One thread at a time may use an object.
class DataOrder {
public:
    /// Throws Internal for options that are out of range.
    explicit DataOrder(const DataOrderOptions& options);

    /// Indices of the sequences of micro-batch `microBatch` in step `step`; both count from 0. Where the data end, the
    /// last micro-batch is smaller, and those after it are empty.
    std::vector<std::int64_t> indices(std::int64_t step, std::int64_t microBatch);
    /// Steps until the data end; 0: they never end.
    std::int64_t steps() const;
    /// The epoch, from 0 and with its fraction, that is reached when `steps` steps are done.
    double epochAfter(std::int64_t steps) const;

private:
    std::int64_t perStep() const { return options_.microBatchSize * options_.microBatches; }
    const std::vector<std::int64_t>& orderOf(std::int64_t epoch);

    DataOrderOptions options_;
    std::int64_t epoch_ = -1; ///< of order_
    std::vector<std::int64_t> order_;
};

} // namespace vitrine::engine
