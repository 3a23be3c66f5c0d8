// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows are divided into those that are trained and those that only measure how well the training goes.

#include <cstdint>
#include <string>
#include <vector>

namespace vitrine::engine {

struct DataSplitOptions {
    double fraction = 0;    ///< of the rows that validate, below 1; a fraction above 0 takes one row at least
    std::int64_t count = 0; ///< of the rows that validate; it counts where it is not 0
    std::uint64_t seed = 0;
};

/// Indices of rows, each list ascending.
struct DataSplit {
    std::vector<std::int64_t> training;
    std::vector<std::int64_t> validation;
};

/// Chooses rows at random; the choice depends on the number of rows and the options alone. Throws BadInput "WHERE:
/// what" when no row would be left to train.
DataSplit splitRows(std::int64_t rows, const DataSplitOptions& options, const std::string& where);

} // namespace vitrine::engine
