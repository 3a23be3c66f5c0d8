// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/option_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "engine/tokenizer/unicode_text.h"

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

bool ranged(const OptionSpec& option) {
    return option.minimum < option.maximum;
}

/// A bound that no one would type is none: the largest number of the type stands for it.
std::string rangeText(const OptionSpec& option) {
    constexpr double kNoBound = 9e15;
    const bool whole = option.type == OptionType::Integer;
    const auto number = [&](double bound) { return whole ? fmt::format("{:.0f}", bound) : fmt::format("{:g}", bound); };
    const std::string kind = whole ? "a whole number" : "a number";
    const bool least = ranged(option) && option.minimum > -kNoBound, most = ranged(option) && option.maximum < kNoBound;
    if (least && most) {
        return fmt::format("{} from {} to {}", kind, number(option.minimum), number(option.maximum));
    }
    return least  ? fmt::format("{} of at least {}", kind, number(option.minimum))
           : most ? fmt::format("{} of at most {}", kind, number(option.maximum))
                  : kind;
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
            return checkedBytes(value.get<std::uint64_t>());
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
        requireUtf8(text);
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
            return checkedBytes(base::parseBytes(text, name_.empty() ? std::string(option_.key)
                                                                     : fmt::format("{}: {}", name_, option_.key)));
        case OptionType::Choice: {
            const auto choices = splitText(option_.choices, '|');
            require(std::find(choices.begin(), choices.end(), text) != choices.end(),
                    fmt::format("\"{}\" is not one of {}", text, fmt::join(choices, ", ")));
            return std::string(text);
        }
        case OptionType::Path:
            require(!text.empty(), "is empty; name a file or folder, or leave it out");
            return std::string(text);
        case OptionType::Text:
            return std::string(text);
        case OptionType::TokenList:
            return tokensFromText(text);
        case OptionType::TextList:
            require(!text.empty(), "must be a list of texts, none empty");
            return Json::array({std::string(text)});
        case OptionType::KeyValues:
            return pairsFromText(text);
        }
        throw base::Internal("option type out of range");
    }

private:
    void require(bool condition, const std::string& what) const {
        if (!condition) {
            failOption(name_, option_.key, what);
        }
    }

    /// Names of files are bytes; every other text is kept, compared and shown as UTF-8.
    void requireUtf8(std::string_view text) const {
        require(namesFiles(option_) || isValidUtf8(text), "is no UTF-8 text; convert it first, as with iconv");
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

    Json checkedBytes(std::uint64_t bytes) const {
        const auto number = static_cast<double>(bytes);
        require(!ranged(option_) || (number >= option_.minimum && number <= option_.maximum),
                bytes == 0 ? "must be more than 0 B; leave it out for no limit"
                           : fmt::format("{} is too large a size", base::formatBytes(bytes)));
        return bytes;
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
            requireUtf8(value.get_ref<const std::string&>());
            return Json::array({value});
        }
        require(value.is_array(), "must be a list of texts");
        for (const Json& item : value) {
            require(item.is_string() && !item.get_ref<const std::string&>().empty(),
                    "must be a list of texts, none empty");
            requireUtf8(item.get_ref<const std::string&>());
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
            requireUtf8(key);
            requireUtf8(pairs[key].get_ref<const std::string&>());
        }
        return pairs;
    }

    const OptionSpec& option_;
    const std::string& name_;
};

} // namespace

void failOption(const std::string& name, std::string_view key, const std::string& what) {
    throw base::BadInput(name.empty() ? fmt::format("{}: {}", key, what) : fmt::format("{}: {}: {}", name, key, what));
}

void requireOption(const Experiment& experiment, const std::string& name, std::string_view key, std::string_view what) {
    if (experiment.text(key).empty()) {
        failOption(name, key, fmt::format("missing; {}", what));
    }
}

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

Json canonicalValue(const OptionSpec& option, const Json& value, const std::string& name) {
    return OptionReader(option, name).canonical(value);
}

Json valueFromText(const OptionSpec& option, std::string_view text, const std::string& name) {
    return OptionReader(option, name).fromText(text);
}

} // namespace vitrine::engine
