// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/data_split.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/training/data/permutation.h"

namespace vitrine::engine {

namespace {

std::int64_t validationRows(std::int64_t rows, const DataSplitOptions& options, const std::string& where) {
    if (options.count < 0 || !(options.fraction >= 0 && options.fraction < 1)) {
        throw base::BadInput(fmt::format("{}: must be a number of rows, or a fraction from 0 to below 1", where));
    }
    std::int64_t validation = options.count;
    if (options.count == 0 && options.fraction > 0) {
        const auto share = static_cast<std::int64_t>(std::llround(options.fraction * static_cast<double>(rows)));
        validation = std::max<std::int64_t>(share, 1);
    }
    if (validation >= rows) {
        throw base::BadInput(fmt::format("{}: {} of {} rows for validation leave none to train; give a smaller number "
                                         "or more rows",
                                         where, validation, rows));
    }
    return validation;
}

} // namespace

DataSplit splitRows(std::int64_t rows, const DataSplitOptions& options, const std::string& where) {
    const std::int64_t validation = validationRows(rows, options, where);
    std::vector<std::int64_t> order = randomPermutation(rows, seedKey(options.seed, SeedStream::DataSplit), 0);
    DataSplit split;
    split.validation.assign(order.begin(), order.begin() + validation);
    split.training.assign(order.begin() + validation, order.end());
    std::sort(split.validation.begin(), split.validation.end());
    std::sort(split.training.begin(), split.training.end());
    return split;
}

} // namespace vitrine::engine
