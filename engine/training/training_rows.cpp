// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/training_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/strict_json.h"
#include "base/text_lines.h"
#include "engine/chat/chat_message.h"
#include "engine/checkpoint/token_rows.h"
#include "engine/tokenizer/json_field.h"
#include "engine/training/chat_mask.h"

namespace vitrine::engine {

namespace {

constexpr std::size_t kMostValuesOfALine = std::size_t{4} << 20; ///< of JSON; each takes many bytes
constexpr std::int64_t kNotTrained = -100;                       ///< of "labels", as in PyTorch

/// Thrown to leave forTextLines when enough rows are read.
struct EnoughRows {};

void requireKeys(const JsonField& object, std::initializer_list<std::string_view> known, std::string_view what) {
    for (const auto& [key, value] : object.value().items()) {
        if (std::find(known.begin(), known.end(), key) == known.end()) {
            object.bad(fmt::format("has the unknown key {}; {}", quotedForMessage(key), what));
        }
    }
}

class RowMaker {
public:
    RowMaker(const TrainingRowOptions& options, std::string place) : options_(options), place_(std::move(place)) {}

    TrainingRow make(const nlohmann::json& json) const {
        const JsonField object(json, place_);
        if (!json.is_object()) {
            object.bad("must be an object with \"text\", \"messages\" or \"tokens\"");
        }
        const std::array<std::optional<JsonField>, 3> kinds = {object.find("text"), object.find("messages"),
                                                               object.find("tokens")};
        if (std::count_if(kinds.begin(), kinds.end(), [](const auto& kind) { return kind.has_value(); }) != 1) {
            object.bad("must have one of \"text\", \"messages\" and \"tokens\"");
        }
        if (kinds[0]) {
            requireKeys(object, {"text"}, "a row of text has no other");
            return fromText(*kinds[0]);
        }
        if (kinds[1]) {
            requireKeys(object, {"messages"}, "a conversation has no other");
            return fromMessages(object, *kinds[1]);
        }
        requireKeys(object, {"tokens", "trained", "labels"}, "a row of tokens can have \"trained\" or \"labels\"");
        return fromTokens(object, *kinds[2]);
    }

private:
    TrainingRow fromText(const JsonField& text) const {
        requireTokenizer(text);
        if (text.asString().empty()) {
            text.bad("is empty; remove the row");
        }
        TrainingRow row;
        row.tokens = options_.tokenizer->encode(text.asString(), true);
        const std::vector<std::int32_t>& ends = options_.eosTokens;
        const bool ended = !row.tokens.empty() && std::find(ends.begin(), ends.end(), row.tokens.back()) != ends.end();
        if (!ends.empty() && !ended) {
            row.tokens.push_back(ends.front());
        }
        if (row.tokens.empty()) {
            text.bad("has no tokens; remove the row");
        }
        requireKnown(text, row.tokens);
        row.trained.assign(row.tokens.size(), 1);
        return row;
    }

    TrainingRow fromMessages(const JsonField& object, const JsonField& list) const {
        requireTokenizer(list);
        if (options_.format == nullptr) {
            list.bad("the model has no chat format; give the row as text or tokens");
        }
        for (std::size_t i = 0; i < list.arraySize(); ++i) {
            const JsonField message = list.element(i);
            if (message.value().is_object()) {
                // A key that says something about the loss must not be passed over.
                requireKeys(message,
                            {"role", "content", "thinking", "reasoning_content", "name", "tool_calls", "tool_call_id"},
                            "remove it");
            }
        }
        const std::vector<ChatMessage> messages = readChatMessages(object.value(), place_);
        TrainingRow row;
        MaskedChat chat = render(messages);
        requireKnown(list, chat.tokens);
        row.tokens = std::move(chat.tokens);
        row.trained = std::move(chat.trained);
        row.conversation = true;
        if (options_.countTemplate) {
            row.templateTokens = addedByTemplate(messages, static_cast<std::int64_t>(row.tokens.size()));
        }
        return row;
    }

    std::int64_t addedByTemplate(const std::vector<ChatMessage>& messages, std::int64_t all) const {
        for (const ChatMessage& message : messages) {
            all -= static_cast<std::int64_t>(options_.tokenizer->encode(message.text(), false).size());
            all -= static_cast<std::int64_t>(options_.tokenizer->encode(message.thoughts(), false).size());
        }
        return std::max<std::int64_t>(all, 0);
    }

    /// Messages of formats do not know the line.
    MaskedChat render(const std::vector<ChatMessage>& messages) const {
        try {
            return maskedChat(*options_.format, messages, options_.chat, options_.eosTokens);
        } catch (const base::BadInput& error) {
            throw base::BadInput(place_ + ": " + error.message());
        } catch (const base::Unsupported& error) {
            throw base::Unsupported(place_ + ": " + error.message());
        }
    }

    TrainingRow fromTokens(const JsonField& object, const JsonField& tokens) const {
        if (tokens.arraySize() == 0) {
            tokens.bad("is empty; remove the row");
        }
        TrainingRow row;
        for (std::size_t i = 0; i < tokens.arraySize(); ++i) {
            row.tokens.push_back(tokenOf(tokens.element(i)));
        }
        const std::optional<JsonField> trained = object.find("trained");
        const std::optional<JsonField> labels = object.find("labels");
        if (trained && labels) {
            labels->bad("stands together with \"trained\"; give one of them");
        }
        row.trained.assign(row.tokens.size(), 1);
        if (trained) {
            readTrained(*trained, row);
        } else if (labels) {
            readLabels(*labels, row);
        }
        return row;
    }

    std::int32_t tokenOf(const JsonField& element) const {
        const std::int64_t id = element.asInteger(INT64_MIN, INT64_MAX);
        if (id < 0 || id >= options_.vocab) {
            element.bad(fmt::format("id {} is outside the model's vocabulary of {}", id, options_.vocab));
        }
        return static_cast<std::int32_t>(id);
    }

    static void requireLength(const JsonField& list, const TrainingRow& row) {
        if (list.arraySize() != row.tokens.size()) {
            list.bad(fmt::format("has {} entries, but there are {} tokens", list.arraySize(), row.tokens.size()));
        }
    }

    static void readTrained(const JsonField& list, TrainingRow& row) {
        requireLength(list, row);
        for (std::size_t i = 0; i < row.trained.size(); ++i) {
            const JsonField entry = list.element(i);
            const bool yes = entry.value().is_boolean() ? entry.asBool() : entry.asInteger(0, 1) == 1;
            row.trained[i] = yes ? 1 : 0;
        }
    }

    static void readLabels(const JsonField& list, TrainingRow& row) {
        requireLength(list, row);
        for (std::size_t i = 0; i < row.trained.size(); ++i) {
            const JsonField entry = list.element(i);
            const std::int64_t label = entry.asInteger(INT64_MIN, INT64_MAX);
            if (label != kNotTrained && label != row.tokens[i]) {
                entry.bad(
                    fmt::format("must be {} (not trained) or the token in its place, {}", kNotTrained, row.tokens[i]));
            }
            row.trained[i] = label == kNotTrained ? 0 : 1;
        }
    }

    void requireTokenizer(const JsonField& field) const {
        if (options_.tokenizer == nullptr) {
            field.bad("the model has no tokenizer.json; give the row as tokens");
        }
    }

    /// A tokenizer can have more tokens than the model has rows.
    void requireKnown(const JsonField& field, const std::vector<std::int32_t>& ids) const {
        const auto found = std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id >= options_.vocab; });
        if (found != ids.end()) {
            field.bad(fmt::format("the tokenizer gives the id {}, which is outside the model's vocabulary of {}",
                                  *found, options_.vocab));
        }
    }

    const TrainingRowOptions& options_;
    std::string place_; ///< begins all messages: "FILE: line 3"
};

/// Counts rows and tokens of a file and hands the rows on.
class RowCounter {
public:
    RowCounter(const std::string& path, const TrainingRowOptions& options,
               const std::function<void(TrainingRow row)>& take)
        : path_(path), options_(options), take_(take) {}

    void add(TrainingRow row) {
        tokens_ += static_cast<std::int64_t>(row.tokens.size());
        if (tokens_ > options_.mostTokens) {
            throw base::BadInput(fmt::format("{}: line {}: here the file has more than {} tokens; split it", path_,
                                             row.line, options_.mostTokens));
        }
        ++rows_;
        take_(std::move(row));
    }
    bool enough() const {
        return (options_.mostRows > 0 && rows_ >= options_.mostRows) || (options_.enough && options_.enough());
    }

private:
    const std::string& path_;
    const TrainingRowOptions& options_;
    const std::function<void(TrainingRow row)>& take_;
    std::int64_t rows_ = 0;
    std::int64_t tokens_ = 0;
};

void readTensorRows(const std::string& path, const TrainingRowOptions& options, const base::StopToken& stop,
                    RowCounter& rows) {
    std::vector<std::vector<std::int32_t>> ids = readTokenRows(path);
    checkTokenIds(ids, options.vocab, path + ": input_ids");
    for (std::size_t i = 0; i < ids.size() && !rows.enough(); ++i) {
        base::throwIfStopped(stop);
        TrainingRow row;
        row.tokens = std::move(ids[i]);
        row.trained.assign(row.tokens.size(), 1);
        row.line = static_cast<std::int64_t>(i) + 1;
        rows.add(std::move(row));
    }
}

/// Nothing of a line that cannot be read, where somebody takes these.
std::optional<TrainingRow> rowOfLine(const base::TextLine& line, const std::string& path,
                                     const TrainingRowOptions& options) {
    const std::string place = fmt::format("{}: line {}", path, line.number);
    const auto leftOut = [&](const base::Error& error) {
        const std::string& message = error.message();
        const std::size_t begin = message.starts_with(place + ": ")  ? place.size() + 2
                                  : message.starts_with(path + ": ") ? path.size() + 2
                                                                     : 0;
        options.unreadable(line.number, message.substr(begin));
        return std::nullopt;
    };
    try {
        base::JsonLimits limits;
        limits.maxValues = kMostValuesOfALine;
        limits.firstLine = line.number;
        TrainingRow row = RowMaker(options, place).make(base::parseStrictJson(line.text, path, limits));
        row.line = line.number;
        row.offset = line.offset;
        return row;
    } catch (const base::BadInput& error) {
        if (!options.unreadable) {
            throw;
        }
        return leftOut(error);
    } catch (const base::Unsupported& error) {
        if (!options.unreadable) {
            throw;
        }
        return leftOut(error);
    }
}

void readLineRows(const std::string& path, const TrainingRowOptions& options, const base::StopToken& stop,
                  base::ProgressSink* progress, RowCounter& rows) {
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(path, unknown);
    const std::uint64_t total = unknown ? 0 : size;
    const std::string what = "Reading " + std::filesystem::path(path).filename().string();
    base::forTextLines(path, [&](const base::TextLine& line) {
        base::throwIfStopped(stop);
        if (rows.enough()) {
            throw EnoughRows{};
        }
        if (std::optional<TrainingRow> row = rowOfLine(line, path, options)) {
            rows.add(std::move(*row));
        }
        if (progress != nullptr) {
            progress->progress(what, std::min(line.offset + line.text.size() + 1, total), total);
        }
    });
}

} // namespace

bool isTensorFile(const std::string& path) {
    return path.ends_with(".safetensors");
}

void forTrainingRows(const std::string& path, const TrainingRowOptions& options, const base::StopToken& stop,
                     base::ProgressSink* progress, const std::function<void(TrainingRow row)>& take) {
    RowCounter rows(path, options, take);
    if (isTensorFile(path)) {
        readTensorRows(path, options, stop, rows);
        return;
    }
    try {
        readLineRows(path, options, stop, progress, rows);
    } catch (const EnoughRows&) {
        return;
    }
}

TrainingRow readTrainingRow(const std::string& path, std::int64_t line, std::uint64_t offset,
                            const TrainingRowOptions& options) {
    TrainingRowOptions strict = options;
    strict.unreadable = nullptr;
    const std::string text = base::readTextLine(path, offset);
    return *rowOfLine({text, line, offset}, path, strict);
}

std::vector<TrainingRow> readTrainingRows(const std::string& path, const TrainingRowOptions& options,
                                          const base::StopToken& stop, base::ProgressSink* progress) {
    std::vector<TrainingRow> rows;
    bool anyTrained = false;
    forTrainingRows(path, options, stop, progress, [&](TrainingRow row) {
        anyTrained = anyTrained || std::find(row.trained.begin() + 1, row.trained.end(), 1) != row.trained.end();
        rows.push_back(std::move(row));
    });
    if (rows.empty()) {
        throw base::BadInput(path + ": holds no row; write one JSON object on each line");
    }
    if (!anyTrained) {
        throw base::BadInput(path + ": no row has a token that is trained; conversations need an answer of the "
                                    "assistant, rows of tokens a second token that is trained");
    }
    return rows;
}

} // namespace vitrine::engine
