// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/units.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

std::vector<std::string_view> splitText(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
        text.remove_prefix(1);
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
        text.remove_suffix(1);
    }
    return text;
}

template <class T> std::optional<T> parseNumber(std::string_view text) {
    T value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

[[noreturn]] void fail(const std::string& name, std::string_view key, const std::string& what) {
    throw base::BadInput(name.empty() ? fmt::format("{}: {}", key, what) : fmt::format("{}: {}: {}", name, key, what));
}

bool ranged(const OptionSpec& option) {
    return option.minimum < option.maximum;
}

std::string rangeText(const OptionSpec& option) {
    return option.type == OptionType::Integer
               ? fmt::format("a whole number from {:.0f} to {:.0f}", option.minimum, option.maximum)
               : fmt::format("a number from {:g} to {:g}", option.minimum, option.maximum);
}

/// Writes values as the command line does.
std::string valueText(const Json& value) {
    if (value.is_string()) {
        return value.get<std::string>();
    }
    if (value.is_array()) {
        std::vector<std::string> parts;
        for (const Json& item : value) {
            parts.push_back(valueText(item));
        }
        return fmt::format("{}", fmt::join(parts, ","));
    }
    if (value.is_object()) {
        std::vector<std::string> parts;
        for (const auto& [key, item] : value.items()) {
            parts.push_back(key + "=" + valueText(item));
        }
        return fmt::format("{}", fmt::join(parts, ","));
    }
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

class OptionReader {
public:
    OptionReader(const OptionSpec& option, const std::string& name) : option_(option), name_(name) {}

    /// A JSON value of an experiment in canonical form.
    Json canonical(const Json& value) const {
        switch (option_.type) {
        case OptionType::Bool:
            require(value.is_boolean(), "must be true or false");
            return value;
        case OptionType::Integer:
            require(value.is_number_integer(), "must be " + rangeText(option_));
            return checkedInteger(value);
        case OptionType::Real:
            require(value.is_number(), "must be " + rangeText(option_));
            return checkedReal(value.get<double>());
        case OptionType::Bytes:
            if (value.is_string()) {
                return fromText(value.get<std::string>());
            }
            require(value.is_number_integer() && (value.is_number_unsigned() || value.get<std::int64_t>() >= 0) &&
                        value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()},
                    "must be a size such as 16 GiB or a number of bytes");
            return value;
        case OptionType::Choice:
        case OptionType::Text:
        case OptionType::Path:
            require(value.is_string(), "must be a text");
            return fromText(value.get<std::string>());
        case OptionType::TokenList:
            return canonicalTokens(value);
        case OptionType::TextList:
            return canonicalTexts(value);
        case OptionType::KeyValues:
            return canonicalPairs(value);
        }
        throw base::Internal("option type out of range");
    }

    Json fromText(std::string_view text) const {
        switch (option_.type) {
        case OptionType::Bool:
            require(text == "true" || text == "false", "must be true or false");
            return text == "true";
        case OptionType::Integer: {
            const auto number = parseNumber<std::int64_t>(trimmed(text));
            require(number.has_value(), fmt::format("\"{}\" is not {}", text, rangeText(option_)));
            return checkedInteger(*number);
        }
        case OptionType::Real: {
            const auto number = parseNumber<double>(trimmed(text));
            require(number.has_value(), fmt::format("\"{}\" is not {}", text, rangeText(option_)));
            return checkedReal(*number);
        }
        case OptionType::Bytes:
            return base::parseBytes(text, name_.empty() ? std::string(option_.key)
                                                        : fmt::format("{}: {}", name_, option_.key));
        case OptionType::Choice: {
            const auto choices = splitText(option_.choices, '|');
            require(std::find(choices.begin(), choices.end(), text) != choices.end(),
                    fmt::format("\"{}\" is not one of {}", text, fmt::join(choices, ", ")));
            return std::string(text);
        }
        case OptionType::Text:
        case OptionType::Path:
            return std::string(text);
        case OptionType::TokenList:
            return tokensFromText(text);
        case OptionType::TextList:
            return Json::array({std::string(text)});
        case OptionType::KeyValues:
            return pairsFromText(text);
        }
        throw base::Internal("option type out of range");
    }

private:
    void require(bool condition, const std::string& what) const {
        if (!condition) {
            fail(name_, option_.key, what);
        }
    }

    Json checkedInteger(const Json& value) const {
        const bool huge = value.is_number_unsigned() &&
                          value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
        const double number =
            huge ? std::numeric_limits<double>::max() : static_cast<double>(value.get<std::int64_t>());
        require(!ranged(option_) || (number >= option_.minimum && number <= option_.maximum),
                fmt::format("{} is not {}", value.dump(), rangeText(option_)));
        return value.get<std::int64_t>();
    }

    Json checkedReal(double number) const {
        require(std::isfinite(number) && (!ranged(option_) || (number >= option_.minimum && number <= option_.maximum)),
                fmt::format("{} is not {}", number, rangeText(option_)));
        return number;
    }

    Json tokensFromText(std::string_view text) const {
        Json tokens = Json::array();
        for (const std::string_view part : splitText(text, ',')) {
            const auto id = parseNumber<std::int32_t>(trimmed(part));
            require(id.has_value() && *id >= 0,
                    fmt::format("\"{}\" is not a token id; write ids as 1,2,3", trimmed(part)));
            tokens.push_back(*id);
        }
        return tokens;
    }

    Json canonicalTokens(const Json& value) const {
        if (value.is_string()) {
            return tokensFromText(value.get<std::string>());
        }
        require(value.is_array() && !value.empty(), "must be a list of token ids");
        for (const Json& item : value) {
            require(item.is_number_integer() && item.get<std::int64_t>() >= 0 &&
                        item.get<std::int64_t>() <= std::numeric_limits<std::int32_t>::max(),
                    fmt::format("{} is not a token id", item.dump(-1, ' ', false, Json::error_handler_t::replace)));
        }
        return value;
    }

    Json canonicalTexts(const Json& value) const {
        if (value.is_string()) {
            return Json::array({value});
        }
        require(value.is_array(), "must be a list of texts");
        for (const Json& item : value) {
            require(item.is_string() && !item.get_ref<const std::string&>().empty(),
                    "must be a list of texts, none empty");
        }
        return value;
    }

    Json pairsFromText(std::string_view text) const {
        const std::size_t equals = text.find('=');
        require(equals != std::string_view::npos && equals > 0,
                fmt::format("\"{}\" is not of the form key=value", text));
        Json pairs = Json::object();
        pairs[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
        return pairs;
    }

    Json canonicalPairs(const Json& value) const {
        if (value.is_string()) {
            return pairsFromText(value.get<std::string>());
        }
        require(value.is_object(), "must be an object of key and value");
        Json pairs = Json::object();
        for (const auto& [key, item] : value.items()) {
            pairs[key] = valueText(item);
        }
        return pairs;
    }

    const OptionSpec& option_;
    const std::string& name_;
};

std::size_t editDistance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
        }
    }
    return row.back();
}

std::string_view nearestKey(std::string_view key) {
    constexpr std::size_t kLongest = 64; // names longer than this are no typing mistake: compare their beginning
    std::string_view best;
    std::size_t bestDistance = std::numeric_limits<std::size_t>::max();
    for (const OptionSpec& option : optionTable()) {
        const std::size_t distance = editDistance(key.substr(0, kLongest), option.key);
        if (distance < bestDistance) {
            bestDistance = distance;
            best = option.key;
        }
    }
    return best;
}

void requireOneInput(const Json& experiment, const std::string& name, bool searched) {
    constexpr std::array<std::string_view, 5> kInputs = {"prompt", "chat", "tokens", "tokens_file", "prompt_length"};
    std::vector<std::string_view> given;
    for (const std::string_view key : kInputs) {
        if (experiment.contains(key)) {
            given.push_back(key);
        }
    }
    if (given.size() > 1) {
        fail(name, given[1], fmt::format("stands together with {}; give one of them", given[0]));
    }
    if (given.empty() && !searched) {
        fail(name, "prompt", "missing; give one of prompt, chat, tokens, tokens_file, prompt_length");
    }
}

void checkTogether(const Json& experiment, const std::string& name, const std::string& workload, bool plan) {
    const auto need = [&](std::string_view key, std::string_view what) {
        if (!experiment.contains(key) || experiment[std::string(key)] == "") {
            fail(name, key, fmt::format("missing; {}", what));
        }
    };
    if (workload != "tokenize") {
        need("model", "name a model folder, ORG/NAME or synthetic:NAME");
    }
    if (workload != "load" && experiment.value("weights", "") == "both") {
        fail(name, "weights", "both is for load only; choose quantized or dequantized");
    }
    if (workload == "generate") {
        requireOneInput(experiment, name, plan && experiment.value("max_context", false));
    }
    if (plan && workload != "generate") {
        for (const std::string_view key : {"max_context", "max_batch"}) {
            if (experiment.value(std::string(key), false)) {
                fail(name, key, "only a plan of generate searches");
            }
        }
    }
    if (workload == "logits") {
        need("tokens_file", "name a safetensors file with input_ids");
        need("output", "name the file that the logits go to");
    }
    if (workload == "synthesize") {
        need("output", "name the folder that the checkpoint goes to");
        if (!experiment.value("model", std::string()).starts_with("synthetic:")) {
            fail(name, "model", "synthesize writes synthetic models only; name one as synthetic:NAME");
        }
    }
    if (workload == "tokenize") {
        if (!experiment.contains("tokenizer") && !experiment.contains("model")) {
            fail(name, "tokenizer", "missing; name a tokenizer.json or a model folder");
        }
        if (experiment.contains("jsonl") == experiment.contains("text")) {
            fail(name, "jsonl", "give a file of rows or one text");
        }
    }
}

} // namespace

Json parseOption(const OptionSpec& option, std::string_view text) {
    const std::string noFile;
    return OptionReader(option, noFile).fromText(text);
}

Json validateExperiment(const Json& experiment, const std::string& name) {
    const std::string file = name.empty() ? "experiment" : name;
    if (!experiment.is_object()) {
        throw base::BadInput(file + ": must be a JSON object with the keys vitrine and workload");
    }
    if (!experiment.contains("vitrine") || !experiment["vitrine"].is_number_integer() || experiment["vitrine"] != 1) {
        fail(file, "vitrine", "must be 1, the version of the format");
    }
    if (!experiment.contains("workload") || !experiment["workload"].is_string() ||
        workloadBit(experiment["workload"].get<std::string>()) == 0) {
        fail(file, "workload", fmt::format("must be one of {}", fmt::join(workloadNames(), ", ")));
    }
    const std::string workload = experiment["workload"];
    const bool plan = experiment.contains("plan") && experiment["plan"].is_boolean() && experiment["plan"].get<bool>();

    Json out = {{"vitrine", 1}, {"workload", workload}};
    for (const auto& [key, value] : experiment.items()) {
        if (key == "vitrine" || key == "workload") {
            continue;
        }
        const OptionSpec* option = findOption(key);
        if (option == nullptr) {
            fail(file, key, fmt::format("unknown key; the nearest known one is {}", nearestKey(key)));
        }
        if (!optionApplies(*option, workload, plan)) {
            fail(file, key, fmt::format("{} does not take it; remove it", workload));
        }
        if (!value.is_null()) {
            out[key] = OptionReader(*option, file).canonical(value);
        }
    }
    for (const OptionSpec& option : optionTable()) {
        const std::string key(option.key);
        if (!option.defaultText.empty() && !out.contains(key) && optionApplies(option, workload, plan)) {
            out[key] = parseOption(option, option.defaultText);
        }
    }
    checkTogether(out, file, workload, plan);
    return out;
}

std::vector<SpecDifference> diffExperiments(const Json& a, const Json& b) {
    std::vector<std::string> keys = {"vitrine", "workload"};
    for (const OptionSpec& option : optionTable()) {
        keys.emplace_back(option.key);
    }
    for (const Json* side : {&a, &b}) {
        for (const auto& [key, value] : side->items()) {
            if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
                keys.push_back(key);
            }
        }
    }
    const auto textOf = [](const Json& side, const std::string& key) {
        if (!side.contains(key) || side[key].is_null()) {
            return std::string("–");
        }
        const OptionSpec* option = findOption(key);
        const Json& value = side[key];
        return option != nullptr && option->type == OptionType::Bytes && value.is_number_unsigned()
                   ? base::formatBytes(value.get<std::uint64_t>())
                   : valueText(value);
    };
    std::vector<SpecDifference> differences;
    for (const std::string& key : keys) {
        const Json left = a.contains(key) ? a[key] : Json();
        const Json right = b.contains(key) ? b[key] : Json();
        if (left != right) {
            differences.push_back({key, textOf(a, key), textOf(b, key)});
        }
    }
    return differences;
}

} // namespace vitrine::engine
