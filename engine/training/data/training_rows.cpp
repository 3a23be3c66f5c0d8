// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/training_rows.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json_rows.h"
#include "base/strict_json.h"
#include "engine/chat/chat_message.h"
#include "engine/checkpoint/token_rows.h"
#include "engine/tokenizer/json_field.h"
#include "engine/training/data/chat_mask.h"
#include "engine/training/data/row_layouts.h"

namespace vitrine::engine {

namespace {

constexpr std::size_t kMostValuesOfARow = std::size_t{4} << 20; ///< of JSON; each takes many bytes
constexpr std::int64_t kNotTrained = -100;                      ///< of "labels", as in PyTorch

/// Thrown to leave forJsonRows when enough rows are read.
struct EnoughRows {};

class RowMaker {
public:
    RowMaker(const TrainingRowOptions& options, std::string place) : options_(options), place_(std::move(place)) {}

    TrainingRow make(const RowForm& form) const {
        switch (form.kind) {
        case RowLayout::Text:
        case RowLayout::Completion:
            return fromText(form);
        case RowLayout::Chat:
            return fromMessages(form);
        case RowLayout::Tokens:
            break;
        }
        return fromTokens(form);
    }

private:
    [[noreturn]] void bad(std::string_view what) const { throw base::BadInput(fmt::format("{}: {}", place_, what)); }

    TrainingRow fromText(const RowForm& form) const {
        const std::string_view key = form.kind == RowLayout::Text ? "text" : "completion";
        requireTokenizer(key);
        if (form.prompt.empty() && form.text.empty()) {
            bad(fmt::format("{}: is empty; remove the row", key));
        }
        TrainingRow row;
        row.tokens = options_.tokenizer->encode(form.prompt + form.text, true);
        const std::vector<std::int32_t>& ends = options_.eosTokens;
        const bool ended = !row.tokens.empty() && std::find(ends.begin(), ends.end(), row.tokens.back()) != ends.end();
        if (!ends.empty() && !ended) {
            row.tokens.push_back(ends.front());
        }
        if (row.tokens.empty()) {
            bad(fmt::format("{}: has no tokens; remove the row", key));
        }
        requireKnown(key, row.tokens);
        row.trained.assign(row.tokens.size(), 1);
        std::fill_n(row.trained.begin(), tokensOfPrompt(form, row.tokens), std::uint8_t{0});
        return row;
    }

    /// Tokens that the row has in common with its prompt alone. A token that the prompt shares with the completion is
    /// part of the completion.
    std::ptrdiff_t tokensOfPrompt(const RowForm& form, const std::vector<std::int32_t>& ids) const {
        if (form.prompt.empty()) {
            return 0;
        }
        const std::vector<std::int32_t> prompt = options_.tokenizer->encode(form.prompt, true);
        return std::mismatch(ids.begin(), ids.end(), prompt.begin(), prompt.end()).first - ids.begin();
    }

    TrainingRow fromMessages(const RowForm& form) const {
        requireTokenizer("messages");
        if (options_.format == nullptr) {
            bad("messages: the model has no chat format; give the row as text or tokens");
        }
        ChatOptions options = options_.chat;
        if (!form.tools.empty()) {
            options.tools = RowJson(form.tools).dump();
            if (!options_.format->templateFor(options).names("tools")) {
                throw base::Unsupported(place_ + ": tools: the model's chat template takes none; remove the row");
            }
        }
        const std::vector<ChatMessage> messages = readChatMessages(RowJson{{"messages", form.messages}}, place_);
        TrainingRow row;
        MaskedChat chat = render(messages, options);
        requireKnown("messages", chat.tokens);
        chooseTrained(form.trained, chat);
        row.tokens = std::move(chat.tokens);
        row.trained = std::move(chat.trained);
        row.conversation = true;
        if (options_.countTemplate) {
            row.templateTokens = addedByTemplate(messages, static_cast<std::int64_t>(row.tokens.size()));
        }
        return row;
    }

    /// Takes the answers out that are not to be trained.
    static void chooseTrained(const std::vector<std::optional<bool>>& flags, MaskedChat& chat) {
        for (std::size_t i = 0; i < chat.tokens.size(); ++i) {
            const bool kept =
                chat.trained[i] != 0 && flags.at(static_cast<std::size_t>(chat.message[i])).value_or(true);
            chat.trained[i] = kept ? 1 : 0;
        }
    }

    std::int64_t addedByTemplate(const std::vector<ChatMessage>& messages, std::int64_t all) const {
        for (const ChatMessage& message : messages) {
            all -= static_cast<std::int64_t>(options_.tokenizer->encode(message.text(), false).size());
            all -= static_cast<std::int64_t>(options_.tokenizer->encode(message.thoughts(), false).size());
        }
        return std::max<std::int64_t>(all, 0);
    }

    /// Messages of formats do not know the line.
    MaskedChat render(const std::vector<ChatMessage>& messages, const ChatOptions& options) const {
        try {
            return maskedChat(*options_.format, messages, options, options_.eosTokens);
        } catch (const base::BadInput& error) {
            throw base::BadInput(place_ + ": " + error.message());
        } catch (const base::Unsupported& error) {
            throw base::Unsupported(place_ + ": " + error.message());
        }
    }

    TrainingRow fromTokens(const RowForm& form) const {
        const JsonField tokens(*form.tokens.value, place_, form.tokens.key);
        if (tokens.arraySize() == 0) {
            tokens.bad("is empty; remove the row");
        }
        TrainingRow row;
        for (std::size_t i = 0; i < tokens.arraySize(); ++i) {
            row.tokens.push_back(tokenOf(tokens.element(i)));
        }
        if (form.marks.value != nullptr && form.labels.value != nullptr) {
            JsonField(*form.labels.value, place_, form.labels.key)
                .bad(fmt::format("stands together with \"{}\"; give one of them", form.marks.key));
        }
        row.trained.assign(row.tokens.size(), 1);
        if (form.marks.value != nullptr) {
            readTrained(JsonField(*form.marks.value, place_, form.marks.key), row);
        } else if (form.labels.value != nullptr) {
            readLabels(JsonField(*form.labels.value, place_, form.labels.key), row);
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

    void requireTokenizer(std::string_view field) const {
        if (options_.tokenizer == nullptr) {
            bad(fmt::format("{}: the model has no tokenizer.json; give the row as tokens", field));
        }
    }

    /// A tokenizer can have more tokens than the model has rows.
    void requireKnown(std::string_view field, const std::vector<std::int32_t>& ids) const {
        const auto found = std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id >= options_.vocab; });
        if (found != ids.end()) {
            bad(fmt::format("{}: the tokenizer gives the id {}, which is outside the model's vocabulary of {}", field,
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

    void add(TrainingRow row, bool inArray) {
        tokens_ += static_cast<std::int64_t>(row.tokens.size());
        if (tokens_ > options_.mostTokens) {
            throw base::BadInput(fmt::format("{}: here the file has more than {} tokens; split it",
                                             rowPlace(path_, row.line, inArray), options_.mostTokens));
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
        rows.add(std::move(row), true);
    }
}

/// Members of messages that the chat template reads are no keys without use.
RowNotes notesFor(const TrainingRowOptions& options) {
    return RowNotes([format = options.format](std::string_view name) {
        return format != nullptr && format->templateFor({}).names(name);
    });
}

TrainingRow makeRow(const base::JsonRow& json, const std::string& path, const TrainingRowOptions& options,
                    RowNotes& notes) {
    const std::string place = rowPlace(path, json.number, json.inArray);
    base::JsonLimits limits;
    limits.maxValues = kMostValuesOfARow;
    limits.firstLine = json.line;
    RowJson parsed = base::parseOrderedJson(json.text, json.inArray ? place : path, limits);
    TrainingRow row = RowMaker(options, place).make(readRowLayout(std::move(parsed), place, notes));
    row.line = json.number;
    row.offset = json.offset;
    return row;
}

/// Nothing of a row that cannot be read, where somebody takes these.
std::optional<TrainingRow> rowOrReason(const base::JsonRow& json, const std::string& path,
                                       const TrainingRowOptions& options, RowNotes& notes) {
    const auto leftOut = [&](const base::Error& error) {
        std::string_view reason = error.message();
        const std::string place = rowPlace(path, json.number, json.inArray);
        for (const std::string& known : {place + ": ", place + ", ", path + ": "}) {
            if (reason.starts_with(known)) {
                reason.remove_prefix(known.size());
                break;
            }
        }
        options.unreadable(json.number, std::string(reason));
        return std::nullopt;
    };
    try {
        return makeRow(json, path, options, notes);
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

void readJsonRows(const std::string& path, const TrainingRowOptions& options, const base::StopToken& stop,
                  base::ProgressSink* progress, RowCounter& rows) {
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(path, unknown);
    const std::uint64_t total = unknown ? 0 : size;
    const std::string what = "Reading " + std::filesystem::path(path).filename().string();
    RowNotes notes = notesFor(options);
    try {
        base::forJsonRows(path, [&](const base::JsonRow& json) {
            base::throwIfStopped(stop);
            if (rows.enough()) {
                throw EnoughRows{};
            }
            if (std::optional<TrainingRow> row = rowOrReason(json, path, options, notes)) {
                rows.add(std::move(*row), json.inArray);
            }
            if (progress != nullptr) {
                progress->progress(what, std::min(json.offset + json.text.size() + 1, total), total);
            }
        });
    } catch (const EnoughRows&) { // the rest of the file is not wanted
    }
    notes.say(path);
}

} // namespace

std::string rowPlace(const std::string& path, std::int64_t line, bool inArray) {
    return fmt::format("{}: {} {}", path, inArray ? "row" : "line", line);
}

bool isTensorFile(const std::string& path) {
    return path.ends_with(".safetensors");
}

bool isArrayOfRows(const std::string& path) {
    return !isTensorFile(path) && base::isJsonArrayFile(path);
}

void forTrainingRows(const std::string& path, const TrainingRowOptions& options, const base::StopToken& stop,
                     base::ProgressSink* progress, const std::function<void(TrainingRow row)>& take) {
    RowCounter rows(path, options, take);
    if (isTensorFile(path)) {
        readTensorRows(path, options, stop, rows);
        return;
    }
    readJsonRows(path, options, stop, progress, rows);
}

TrainingRow readTrainingRow(const std::string& path, std::int64_t line, std::uint64_t offset,
                            const TrainingRowOptions& options) {
    const std::string text = base::readJsonRow(path, offset);
    const bool inArray = base::isJsonArrayFile(path);
    RowNotes said = notesFor(options); // they were said when the file was read
    return makeRow({text, line, inArray ? 1 : line, offset, inArray}, path, options, said);
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
        throw base::BadInput(path + ": holds no row; write one JSON object on each line, or one array of them");
    }
    if (!anyTrained) {
        throw base::BadInput(path + ": no row has a token that is trained; conversations need an answer of the "
                                    "assistant, rows of tokens a second token that is trained");
    }
    return rows;
}

} // namespace vitrine::engine
