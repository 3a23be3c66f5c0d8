// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/files/metric_files.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <system_error>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/output_file.h"

namespace vitrine::engine {

namespace {

[[noreturn]] void failMetricFile(const std::string& path) {
    base::failWriting(path, errno);
}

/// A field of a table's header. Names with a comma, a quote or a line end are quoted.
std::string csvField(const std::string& name) {
    if (name.find_first_of(",\"\r\n") == std::string::npos) {
        return name;
    }
    std::string out = "\"";
    for (const char letter : name) {
        out += letter == '"' ? "\"\"" : std::string(1, letter);
    }
    return out + '"';
}

std::string csvHeader(const std::vector<std::string>& columns) {
    std::string header = "step";
    for (const std::string& column : columns) {
        header += "," + csvField(column);
    }
    return header;
}

/// The number before the first comma.
std::optional<std::int64_t> stepOfRow(std::string_view row) {
    std::int64_t step = 0;
    const char* const begin = row.data();
    const char* const end = begin + std::min(row.find(','), row.size());
    const auto parsed = std::from_chars(begin, end, step);
    return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(step) : std::nullopt;
}

/// The fields of a line, as they stand there: names keep their quotes.
std::vector<std::string_view> fieldsOf(std::string_view line) {
    std::vector<std::string_view> out;
    bool quoted = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        quoted = quoted != (line[i] == '"');
        if (line[i] == ',' && !quoted) {
            out.push_back(line.substr(begin, i - begin));
            begin = i + 1;
        }
    }
    out.push_back(line.substr(begin));
    return out;
}

/// For each field of `header` its place in `earlier`, the header of a table that lacks some of its columns; nothing
/// where it has others or another order.
std::optional<std::vector<std::optional<std::size_t>>> placesIn(std::string_view earlier, std::string_view header) {
    const std::vector<std::string_view> there = fieldsOf(earlier);
    std::vector<std::optional<std::size_t>> places;
    std::size_t next = 0;
    for (const std::string_view field : fieldsOf(header)) {
        const bool has = next < there.size() && there[next] == field;
        places.push_back(has ? std::optional(next++) : std::nullopt);
    }
    return next == there.size() && places.front() ? std::optional(std::move(places)) : std::nullopt;
}

/// A run may go on with a program that writes more numbers than the one that began it: the earlier rows get an empty
/// field for each new column. Other tables stay as they are.
void addColumns(const std::string& path, const std::string& header) {
    std::ifstream file(path, std::ios::binary);
    std::string line(header.size(), '\0'); // a table with fewer columns has a shorter header
    file.read(line.data(), static_cast<std::streamsize>(line.size()));
    line.resize(static_cast<std::size_t>(file.gcount()));
    const std::size_t end = line.find('\n');
    const auto places = end == std::string::npos ? std::nullopt : placesIn(line.substr(0, end), header);
    if (!places) {
        return;
    }
    file.clear();
    file.seekg(static_cast<std::streamoff>(end + 1));
    base::writeOutput(path, [&](std::ostream& out) {
        out << header << '\n';
        while (std::getline(file, line) && !file.eof()) { // a line without its end is not finished
            const std::vector<std::string_view> fields = fieldsOf(line);
            for (std::size_t i = 0; i < places->size(); ++i) {
                const std::optional<std::size_t> place = (*places)[i];
                out << (i == 0 ? "" : ",") << (place && *place < fields.size() ? fields[*place] : std::string_view());
            }
            out << '\n';
        }
    });
}

/// Bytes of the header and of the rows before `firstStep`; 0 for a file that is empty or ends within its header.
std::uint64_t keptBytes(const std::string& path, const std::string& header, std::int64_t firstStep) {
    std::ifstream file(path, std::ios::binary);
    const std::string wanted = header + '\n';
    std::string line(wanted.size(), '\0');
    file.read(line.data(), static_cast<std::streamsize>(line.size()));
    line.resize(static_cast<std::size_t>(file.gcount()));
    if (!wanted.starts_with(line)) {
        throw base::BadInput(path + ": has other columns than this run, so nothing can be added; give another file");
    }
    if (line.size() < wanted.size()) {
        return 0;
    }
    std::uint64_t kept = wanted.size();
    while (std::getline(file, line) && !file.eof()) { // a line without its end is not finished
        const std::optional<std::int64_t> step = stepOfRow(line);
        if (!step || *step >= firstStep) {
            break;
        }
        kept += line.size() + 1;
    }
    return kept;
}

// The few protocol buffers of an event, https://protobuf.dev/programming-guides/encoding: each field begins with its
// number and the kind of its value.

constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kFixed64 = 1;
constexpr std::uint32_t kBytes = 2;
constexpr std::uint32_t kFixed32 = 5;

template <class T> std::string littleEndian(T value) {
    std::string out;
    for (std::size_t i = 0; i < sizeof value; ++i) {
        out += static_cast<char>((value >> (8 * i)) & 0xFFU);
    }
    return out;
}

std::string varint(std::uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) {
        out += static_cast<char>((value & 0x7FU) | 0x80U);
    }
    return out += static_cast<char>(value);
}

std::string fieldKey(std::uint32_t number, std::uint32_t kind) {
    return varint((number << 3) | kind);
}

std::string bytesField(std::uint32_t number, const std::string& bytes) {
    return fieldKey(number, kBytes) + varint(bytes.size()) + bytes;
}

/// Event { double wall_time = 1; int64 step = 2; }, to which its contents are added.
std::string eventHead(std::int64_t step) {
    const double seconds = static_cast<double>(base::wallClockMs()) / 1000;
    return fieldKey(1, kFixed64) + littleEndian(std::bit_cast<std::uint64_t>(seconds)) + fieldKey(2, kVarint) +
           varint(static_cast<std::uint64_t>(step));
}

/// The checksum of a record, changed so that checksums of data that hold checksums stay good.
std::uint32_t maskedChecksum(std::string_view bytes) {
    const std::uint32_t crc = crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xA282'EAD8U;
}

std::string eventFileName() {
    static std::atomic<int> number = 0;
    std::array<char, 256> host{};
    if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') {
        host = {'h', 'o', 's', 't'};
    }
    return fmt::format("events.out.tfevents.{:010}.{}.{}.{}", base::wallClockMs() / 1000, host.data(), getpid(),
                       number++);
}

} // namespace

MetricTable::MetricTable(const std::string& path, const std::vector<std::string>& columns, std::int64_t firstStep)
    : path_(path), columns_(columns.size()) {
    const std::string header = csvHeader(columns);
    std::error_code failed;
    std::uint64_t kept = 0;
    if (std::filesystem::is_regular_file(path, failed)) {
        if (firstStep > 1) {
            addColumns(path, header);
        }
        kept = keptBytes(path, header, firstStep);
        std::filesystem::resize_file(path, kept, failed);
        if (failed) {
            failMetricFile(path);
        }
    }
    file_.open(path, std::ios::binary | std::ios::app);
    if (kept == 0) {
        file_ << header << '\n' << std::flush;
    }
    if (!file_) {
        failMetricFile(path);
    }
}

void MetricTable::write(std::int64_t step, std::span<const double> values) {
    if (values.size() != columns_) {
        throw base::Internal(fmt::format("{}: {} values for {} columns", path_, values.size(), columns_));
    }
    std::string row = std::to_string(step);
    for (const double value : values) {
        row += std::isnan(value) ? "," : fmt::format(",{}", value);
    }
    row += '\n';
    // One write of one row: a reader at the same time sees whole rows.
    file_.write(row.data(), static_cast<std::streamsize>(row.size())).flush();
    if (!file_) {
        failMetricFile(path_);
    }
}

std::uint32_t crc32c(std::string_view bytes) {
    static const auto kTable = [] {
        std::array<std::uint32_t, 256> table{};
        for (std::uint32_t i = 0; i < table.size(); ++i) {
            std::uint32_t entry = i;
            for (int bit = 0; bit < 8; ++bit) {
                entry = (entry >> 1) ^ ((entry & 1U) != 0 ? 0x82F6'3B78U : 0U);
            }
            table[i] = entry;
        }
        return table;
    }();
    std::uint32_t crc = ~0U;
    for (const char byte : bytes) {
        crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU];
    }
    return ~crc;
}

TensorBoardFile::TensorBoardFile(const std::string& folder, std::int64_t firstStep) {
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    path_ = folder + "/" + eventFileName();
    file_.open(path_, std::ios::binary | std::ios::trunc);
    // Event { string file_version = 3; }
    writeEvent(eventHead(0) + bytesField(3, "brain.Event:2"));
    // Event { SessionLog session_log = 7; } with SessionLog { status = 1: START }
    writeEvent(eventHead(firstStep) + bytesField(7, fieldKey(1, kVarint) + varint(1)));
}

void TensorBoardFile::write(std::int64_t step, std::span<const NamedMetric> values) {
    // Event { Summary summary = 5; }, Summary { repeated Value value = 1; }, Value { tag = 1; simple_value = 2; }
    std::string summary;
    for (const NamedMetric& metric : values) {
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(metric.value));
        summary += bytesField(1, bytesField(1, metric.name) + fieldKey(2, kFixed32) + littleEndian(bits));
    }
    writeEvent(eventHead(step) + bytesField(5, summary));
}

void TensorBoardFile::writeEvent(const std::string& event) {
    const std::string length = littleEndian(static_cast<std::uint64_t>(event.size()));
    const std::string record =
        length + littleEndian(maskedChecksum(length)) + event + littleEndian(maskedChecksum(event));
    file_.write(record.data(), static_cast<std::streamsize>(record.size())).flush();
    if (!file_) {
        failMetricFile(path_);
    }
}

} // namespace vitrine::engine
