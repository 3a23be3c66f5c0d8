// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the fields of results are called, in which unit they are, and which way is better. Each field stands once, in
// results.h. The row of a workload (workload_table.h) lists the fields that its runs and plans report. Those who write
// a result, read it from a session, compare it or show it ask here, so no other place holds the name of a field.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

enum class ResultUnit : std::uint8_t {
    Text,
    Flag,
    Count,
    Number, ///< without a unit
    Share,  ///< of a whole, 0 to 1
    Bytes,
    Seconds,
    Milliseconds,
    BytesPerSecond,
    GigabytesPerSecond,
    TokensPerSecond,
    TeraflopsPerSecond,
    List, ///< of single values: data such as token ids and losses, no result to compare
    Rows, ///< a list of objects whose members are fields themselves; comparisons go through it
    Data, ///< objects that are no result to compare, such as the layout of a cache
};

enum class Better : std::uint8_t { Neither, Less, More };

struct ResultField {
    std::string_view key; ///< JSON key, "peak_bytes"; a member of an object by its path, "roofline.ratio"
    ResultUnit unit = ResultUnit::Text;
    std::string_view words; ///< for people, "peak memory"
    Better better = Better::Neither;
    bool each = false; ///< the value is an object, and the unit is that of each of its members: "peak_by_category"
};

/// Fields that several workloads report together, such as those of memory.
using ResultSet = std::span<const ResultField* const>;

/// The field of a path in the metrics of a run, as comparisons write it: "peak_bytes", "ttft.p95",
/// "variants.quantized.peak_bytes" (a row of a list by its name). Null when no workload declares it. Any thread.
const ResultField* findResult(std::string_view path);
/// "peak memory", "time to first token: p95", "quantized: peak memory". A path that no workload declares, which may
/// come from another version of the program, is spelled with blanks.
std::string resultWords(std::string_view path);
/// Place in a list: what answers a question first has the smallest number, unknown paths come last.
int resultRank(std::string_view path);
/// Whether comparisons show the path: single values, without lists, data and identities.
bool isComparable(std::string_view path);
/// The keys of all declared fields that comparisons show.
std::vector<std::string_view> comparableResults();
/// The value with its unit, for people: "1.5 GiB", "12,345 tok/s". A path that is not declared shows the bare number.
std::string resultValueText(std::string_view path, const nlohmann::json& value);

// Reading. `object` is the JSON object that holds the field: the metrics, or one row of a field of unit Rows. A field
// that is missing or of another type is nothing, because sessions may come from another version.

/// The value itself; null when it is missing. Follows paths.
const nlohmann::json* valueOf(const nlohmann::json& object, const ResultField& field);
std::optional<double> numberOf(const nlohmann::json& object, const ResultField& field);
/// A number of bytes or of other things that are counted: not below 0 and below 9e18.
std::optional<std::uint64_t> countOf(const nlohmann::json& object, const ResultField& field);
std::string textOf(const nlohmann::json& object, const ResultField& field); ///< empty where it is missing
std::optional<bool> flagOf(const nlohmann::json& object, const ResultField& field);
/// The rows of a field of unit Rows, or the values of a list; an empty array where it is missing.
const nlohmann::json& rowsOf(const nlohmann::json& object, const ResultField& field);

} // namespace vitrine::engine
