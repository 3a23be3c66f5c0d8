// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/batch/request_trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/philox.h"
#include "base/strict_json.h"
#include "base/text_lines.h"
#include "engine/checkpoint/atomic_file.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

constexpr double kLatestArrival = 1e8;              ///< seconds: three years
constexpr std::int64_t kMostNewTokens = 16'777'216; ///< of one request
constexpr std::int64_t kMostPromptTokens = 16'777'216;
constexpr std::int64_t kMostId = 2'147'483'647;
constexpr std::size_t kLongestId = 256;
constexpr std::size_t kMostStops = 64;

/// Reads the fields of one row; every failure names the line and the field.
class RowReader {
public:
    RowReader(const Json& row, std::string place) : row_(row), place_(std::move(place)) {
        if (!row.is_object()) {
            throw base::BadInput(place_ + ": must be a JSON object such as {\"prompt_length\": 16}");
        }
    }

    TraceRow read(std::int64_t number) {
        TraceRow out;
        out.place = place_;
        readId(out, number);
        out.arrival = real("arrival", 0, kLatestArrival).value_or(0);
        readPrompt(out);
        out.maxNewTokens = integer("max_new_tokens", 1, kMostNewTokens).value_or(0);
        out.temperature = real("temperature", 0, 100);
        out.topK = integer("top_k", 0, kMostNewTokens);
        out.topP = real("top_p", 0, 1);
        if (out.topP && *out.topP <= 0) {
            fail("top_p", "0 keeps no token; give more than 0 (1 is off)");
        }
        out.minP = real("min_p", 0, 1);
        out.repetitionPenalty = real("repetition_penalty", 0.01, 100);
        out.frequencyPenalty = real("frequency_penalty", -2, 2);
        out.presencePenalty = real("presence_penalty", -2, 2);
        out.seed = integer("seed", 0, std::int64_t{1} << 53);
        if (const Json* stops = take("stop")) {
            readStops(*stops, out.stop);
        }
        if (const Json* ids = take("stop_tokens")) {
            out.stopTokens = tokenList(*ids, "stop_tokens", kMostStops);
        }
        for (const auto& [key, value] : row_.items()) {
            if (!known_.contains(key)) {
                fail(key, "unknown field; a row has id, arrival, tokens, prompt or prompt_length, max_new_tokens, "
                          "temperature, top_k, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, "
                          "seed, stop, stop_tokens");
            }
        }
        return out;
    }

private:
    [[noreturn]] void fail(std::string_view field, std::string_view what) const {
        throw base::BadInput(fmt::format("{}: {}: {}", place_, field, what));
    }

    /// Null where the row does not have it.
    const Json* take(const char* field) {
        known_.insert(field);
        const auto found = row_.find(field);
        return found == row_.end() || found->is_null() ? nullptr : &*found;
    }

    std::optional<double> real(const char* field, double least, double most) {
        const Json* value = take(field);
        if (value == nullptr) {
            return {};
        }
        if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most)) {
            fail(field, fmt::format("must be a number from {} to {}", least, most));
        }
        return value->get<double>();
    }

    std::optional<std::int64_t> integer(const char* field, std::int64_t least, std::int64_t most) {
        const Json* value = take(field);
        if (value == nullptr) {
            return {};
        }
        const bool fits = value->is_number_unsigned() ? value->get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                                      : value->is_number_integer();
        if (!fits || value->get<std::int64_t>() < least || value->get<std::int64_t>() > most) {
            fail(field, fmt::format("must be a whole number from {} to {}", least, most));
        }
        return value->get<std::int64_t>();
    }

    void readId(TraceRow& out, std::int64_t number) {
        const Json* id = take("id");
        if (id == nullptr) {
            out.id = std::to_string(number);
            out.idIsNumber = true;
        } else if (id->is_number_integer()) {
            out.id = id->dump();
            out.idIsNumber = true;
        } else if (id->is_string() && !id->get_ref<const std::string&>().empty() &&
                   id->get_ref<const std::string&>().size() <= kLongestId) {
            out.id = id->get<std::string>();
        } else {
            fail("id", fmt::format("must be a whole number or a text of 1 to {} bytes", kLongestId));
        }
    }

    std::vector<std::int32_t> tokenList(const Json& list, const char* field, std::size_t most) const {
        if (!list.is_array() || list.size() > most) {
            fail(field, fmt::format("must be a list of at most {} token ids", most));
        }
        std::vector<std::int32_t> ids;
        ids.reserve(list.size());
        for (const Json& id : list) {
            if (!id.is_number_unsigned() || id.get<std::uint64_t>() > static_cast<std::uint64_t>(kMostId)) {
                fail(field, fmt::format("{} is not a token id", id.dump().substr(0, 40)));
            }
            ids.push_back(static_cast<std::int32_t>(id.get<std::int64_t>()));
        }
        return ids;
    }

    void readPrompt(TraceRow& out) {
        const Json* tokens = take("tokens");
        const Json* prompt = take("prompt");
        const std::optional<std::int64_t> length = integer("prompt_length", 1, kMostPromptTokens);
        const int given = (tokens != nullptr ? 1 : 0) + (prompt != nullptr ? 1 : 0) + (length ? 1 : 0);
        if (given != 1) {
            fail("prompt", given == 0 ? "missing; give one of tokens, prompt, prompt_length"
                                      : "stands together with another; give one of tokens, prompt, prompt_length");
        }
        if (tokens != nullptr) {
            out.tokens = tokenList(*tokens, "tokens", static_cast<std::size_t>(kMostPromptTokens));
            if (out.tokens.empty()) {
                fail("tokens", "has no tokens; give at least one");
            }
        } else if (prompt != nullptr) {
            if (!prompt->is_string()) {
                fail("prompt", "must be a text");
            }
            out.prompt = prompt->get<std::string>();
        }
        out.promptLength = length.value_or(0);
    }

    void readStops(const Json& list, std::vector<std::string>& out) const {
        if (!list.is_array() || list.size() > kMostStops) {
            fail("stop", fmt::format("must be a list of at most {} texts", kMostStops));
        }
        for (const Json& text : list) {
            if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
                fail("stop", "must be a list of texts that are not empty");
            }
            out.push_back(text.get<std::string>());
        }
    }

    const Json& row_;
    std::string place_;
    std::set<std::string, std::less<>> known_;
};

Json rowJson(const TraceRow& row) {
    Json out = {{"id", row.idJson()}, {"arrival", row.arrival}};
    if (row.prompt) {
        out["prompt"] = *row.prompt;
    } else if (row.promptLength > 0) {
        out["prompt_length"] = row.promptLength;
    } else {
        out["tokens"] = row.tokens;
    }
    if (row.maxNewTokens > 0) {
        out["max_new_tokens"] = row.maxNewTokens;
    }
    const auto put = [&out](const char* field, const auto& value) {
        if (value) {
            out[field] = *value;
        }
    };
    put("temperature", row.temperature);
    put("top_k", row.topK);
    put("top_p", row.topP);
    put("min_p", row.minP);
    put("repetition_penalty", row.repetitionPenalty);
    put("frequency_penalty", row.frequencyPenalty);
    put("presence_penalty", row.presencePenalty);
    put("seed", row.seed);
    put("stop_tokens", row.stopTokens);
    if (!row.stop.empty()) {
        out["stop"] = row.stop;
    }
    return out;
}

/// Numbers of one row of a generated trace, by what they are for.
class Draws {
public:
    Draws(std::uint64_t seed, std::int64_t row)
        : bits_(base::philox4x32(base::philoxKey(seed, 0x7261u), static_cast<std::uint64_t>(row), 0)) {}

    /// Uniform in (0, 1).
    double unit(std::size_t which) const { return (static_cast<double>(bits_[which]) + 0.5) * 0x1.0p-32; }
    std::int64_t inRange(std::size_t which, const LengthRange& range) const {
        const auto count = static_cast<double>(range.most - range.least + 1);
        return std::min(range.most, range.least + static_cast<std::int64_t>(unit(which) * count));
    }

private:
    std::array<std::uint32_t, 4> bits_;
};

constexpr double kParetoExponent = 1.1;

std::int64_t paretoLength(double unit, const LengthRange& range) {
    const double length = static_cast<double>(range.least) / std::pow(unit, 1 / kParetoExponent);
    return length >= static_cast<double>(range.most) ? range.most : static_cast<std::int64_t>(length);
}

} // namespace

Json TraceRow::idJson() const {
    return idIsNumber ? Json::parse(id) : Json(id);
}

std::vector<TraceRow> readRequestTrace(const std::string& path) {
    std::vector<TraceRow> rows;
    std::set<std::string> ids;
    std::int64_t tokens = 0;
    base::forTextLines(path, [&](std::string_view line, std::int64_t number) {
        const std::string place = fmt::format("{}: line {}", path, number);
        const Json json = base::parseStrictJson(line, path, base::JsonLimits{.firstLine = number});
        TraceRow row = RowReader(json, place).read(static_cast<std::int64_t>(rows.size()));
        if (!ids.insert(row.id).second) {
            throw base::BadInput(fmt::format("{}: id: \"{}\" stands in an earlier row too", place, row.id));
        }
        tokens += static_cast<std::int64_t>(row.tokens.size()) + row.promptLength;
        if (tokens > kMostTraceTokens) {
            throw base::BadInput(
                fmt::format("{}: prompt: the trace has more than {} prompt tokens in all", place, kMostTraceTokens));
        }
        rows.push_back(std::move(row));
        if (static_cast<std::int64_t>(rows.size()) > kMostTraceRows) {
            throw base::BadInput(fmt::format("{}: the trace has more than {} requests", path, kMostTraceRows));
        }
    });
    if (rows.empty()) {
        throw base::BadInput(path + ": has no requests; write one JSON object on each line");
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const TraceRow& a, const TraceRow& b) { return a.arrival < b.arrival; });
    return rows;
}

void writeRequestTrace(const std::string& path, const std::vector<TraceRow>& rows) {
    std::string text;
    for (const TraceRow& row : rows) {
        text += rowJson(row).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }
    writeTextFile(path, text);
}

LengthRange parseLengthRange(std::string_view text, const std::string& name) {
    const auto number = [&](std::string_view part) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (error != std::errc() || end != part.data() + part.size() || value < 1 || value > kMostNewTokens) {
            throw base::BadInput(
                fmt::format("{}: \"{}\" is no length or range of lengths; write it as 128 or 16-256", name, text));
        }
        return value;
    };
    const std::size_t dash = text.find('-');
    LengthRange range;
    range.least = number(text.substr(0, dash));
    range.most = dash == std::string_view::npos ? range.least : number(text.substr(dash + 1));
    if (range.most < range.least) {
        throw base::BadInput(fmt::format("{}: \"{}\" ends before it begins", name, text));
    }
    return range;
}

bool isTraceRecipe(std::string_view trace) {
    return trace == "fixed" || trace == "uniform" || trace == "poisson" || trace == "long-tail";
}

std::vector<TraceRow> makeRequestTrace(const TraceRecipe& recipe) {
    const bool isPoisson = recipe.kind == "poisson";
    if (recipe.requests < 1 || recipe.requests > kMostTraceRows ||
        recipe.requests > kMostTraceTokens / recipe.prompt.most) {
        throw base::BadInput(fmt::format("requests: a trace has 1 to {} requests and at most {} prompt tokens in all",
                                         kMostTraceRows, kMostTraceTokens));
    }
    if (isPoisson && !(recipe.rate > 0)) {
        throw base::BadInput("rate: a poisson trace needs requests per second, more than 0");
    }
    std::vector<TraceRow> rows;
    double arrival = 0;
    for (std::int64_t i = 0; i < recipe.requests; ++i) {
        const Draws draws(recipe.seed, i);
        TraceRow& row = rows.emplace_back();
        row.id = std::to_string(i);
        row.idIsNumber = true;
        if (recipe.rate > 0 && i > 0) {
            arrival += (isPoisson ? -std::log(draws.unit(2)) : 1) / recipe.rate;
        }
        row.arrival = arrival;
        row.promptLength = draws.inRange(0, recipe.prompt);
        row.maxNewTokens = recipe.kind == "fixed"       ? recipe.answer.most
                           : recipe.kind == "long-tail" ? paretoLength(draws.unit(1), recipe.answer)
                                                        : draws.inRange(1, recipe.answer);
        row.stopTokens.emplace();
        row.place = fmt::format("{} trace: row {}", recipe.kind, i);
    }
    return rows;
}

} // namespace vitrine::engine
