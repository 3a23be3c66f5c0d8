// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Numbers of a training run for other programs: a CSV table, and an event file for TensorBoard. Both are complete after
// each step, and both go on where an earlier run ended. One thread at a time may use an object.

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

/// A table with one row for each step: the column "step", then others.
class MetricTable {
public:
    /// Opens the file for steps from `firstStep` on. Rows of earlier steps stay; later ones and a row that was not
    /// finished are removed. Where the run goes on (`firstStep` above 1), columns that the file lacks are added, with
    /// empty fields in its rows. Throws BadInput "FILE: what" when the file cannot be written or is another table.
    MetricTable(const std::string& path, const std::vector<std::string>& columns, std::int64_t firstStep);

    /// One value for each column; the field of one that is NaN stays empty. Throws BadInput when the file cannot be
    /// written. REQUIRES that steps grow.
    void write(std::int64_t step, std::span<const double> values);

private:
    std::string path_;
    std::size_t columns_;
    std::ofstream file_;
};

/// A number with its name in TensorBoard, "train/loss".
struct NamedMetric {
    std::string name;
    double value = 0;
};

/// A file "events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER" in a folder, which TensorBoard finds by itself. A resumed
/// run has a file of its own; it tells TensorBoard to drop what earlier files have of its steps.
class TensorBoardFile {
public:
    /// Makes the folder where there is none. Throws BadInput "FILE: what".
    TensorBoardFile(const std::string& folder, std::int64_t firstStep);

    /// Throws BadInput when the file cannot be written.
    void write(std::int64_t step, std::span<const NamedMetric> values);
    const std::string& path() const { return path_; }

private:
    void writeEvent(const std::string& event);

    std::string path_;
    std::ofstream file_;
};

/// The checksum CRC-32C (Castagnoli) of bytes.
std::uint32_t crc32c(std::string_view bytes);

} // namespace vitrine::engine
