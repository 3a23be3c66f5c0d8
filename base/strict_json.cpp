// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/strict_json.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <istream>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/regular_file.h"

namespace vitrine::base {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Walks over the text and writes down how far the parser has read: its events do not say where they are.
class TrackedIterator {
public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    TrackedIterator() = default;
    TrackedIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}

    reference operator*() const { return *at_; }
    TrackedIterator& operator++() {
        *reached_ = ++at_;
        return *this;
    }
    TrackedIterator operator++(int) {
        const TrackedIterator before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(const TrackedIterator& a, const TrackedIterator& b) { return a.at_ == b.at_; }
    friend bool operator!=(const TrackedIterator& a, const TrackedIterator& b) { return a.at_ != b.at_; }

private:
    const char* at_ = nullptr;
    const char** reached_ = nullptr;
};

/// The parser's sentence without its prefix, its place (counted otherwise than ours) and what it had read.
std::string plainReason(std::string_view text) {
    const std::size_t column = text.find(", column ");
    const std::size_t colon = text.find(": ", column == std::string_view::npos ? 0 : column);
    if (colon != std::string_view::npos) {
        text.remove_prefix(colon + 2);
    } else if (const std::size_t bracket = text.find("] "); text.starts_with('[') && bracket != text.npos) {
        text.remove_prefix(bracket + 2);
    }
    std::string reason(text);
    const std::size_t last = reason.find("; last read: '");
    const std::size_t quote = reason.rfind('\'');
    if (last != std::string::npos && quote > last) {
        reason.erase(last, quote + 1 - last);
    }
    // A number that overflows is quoted whole.
    constexpr std::size_t kMostReason = 200;
    if (reason.size() > kMostReason) {
        reason.resize(kMostReason);
        reason += "...";
    }
    return reason;
}

/// Takes the members of an object one after the other.
template <typename Json> using MemberOf = std::function<void(const std::string& key, Json value)>;

/// Builds the value from the parser's events; false from an event stops the parser. `Json`: json or ordered_json.
template <typename Json> class Builder final : public nlohmann::json_sax<Json> {
public:
    using Events = nlohmann::json_sax<Json>;

    /// With `member` the members of the document go there, and the result is an object without any.
    Builder(const JsonLimits& limits, const MemberOf<Json>* member) : limits_(limits), member_(member) {}

    Json takeResult() { return std::move(root_); }
    const std::string& problem() const { return problem_; }

    bool null() override { return addWhole(nullptr); }
    bool boolean(bool value) override { return addWhole(value); }
    bool number_integer(std::int64_t value) override { return addWhole(value); }
    bool number_unsigned(std::uint64_t value) override { return addWhole(value); }
    bool number_float(double value, const std::string&) override { return addWhole(value); }
    bool string(std::string& value) override { return addWhole(std::move(value)); }
    bool binary(typename Events::binary_t&) override { return fail("binary values are no JSON"); }

    bool start_object(std::size_t) override { return open(Json::object()); }
    bool start_array(std::size_t) override { return open(Json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool key(std::string& name) override {
        if (!count()) {
            return false;
        }
        slot_ = newMember(stack_.back()->template get_ref<typename Json::object_t&>(), name);
        if (slot_ == nullptr) {
            constexpr std::size_t kShown = 80;
            // dump() escapes control characters and replaces a character that the cut went through.
            const json shown = name.substr(0, kShown);
            return fail(fmt::format("key {} appears twice in one object",
                                    shown.dump(-1, ' ', true, json::error_handler_t::replace)));
        }
        return true;
    }

    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
        return fail(plainReason(error.what()));
    }

private:
    /// Null when the object has that key already.
    Json* newMember(typename Json::object_t& members, const std::string& name) {
        if constexpr (std::is_same_v<Json, json>) {
            const auto [slot, isNew] = members.try_emplace(name);
            return isNew ? &slot->second : nullptr;
        } else {
            // The object in order is a list, in which a search for each key would take too long.
            if (!keys_.back().insert(name).second) {
                return nullptr;
            }
            members.push_back({name, Json()});
            return &members.back().second;
        }
    }

    bool fail(std::string problem) {
        problem_ = std::move(problem);
        return false;
    }

    bool count() {
        if (++values_ > limits_.maxValues) {
            return fail(fmt::format("more than {} values", limits_.maxValues));
        }
        return true;
    }

    /// Puts a value where the document is; null when there are too many.
    template <typename Value> Json* add(Value&& value) {
        if (!count()) {
            return nullptr;
        }
        if (stack_.empty()) {
            root_ = Json(std::forward<Value>(value));
            return &root_;
        }
        if (slot_ != nullptr) {
            *slot_ = Json(std::forward<Value>(value));
            return std::exchange(slot_, nullptr);
        }
        return &stack_.back()->template get_ref<typename Json::array_t&>().emplace_back(std::forward<Value>(value));
    }

    bool open(Json container) {
        if (stack_.size() >= static_cast<std::size_t>(std::max(limits_.maxDepth, 0))) {
            return fail(fmt::format("nested deeper than {} levels", limits_.maxDepth));
        }
        // A parent does not grow while its child is open, so the pointer stays good.
        Json* const placed = add(std::move(container));
        if (placed != nullptr) {
            stack_.push_back(placed);
            keys_.emplace_back();
        }
        return placed != nullptr;
    }

    bool close() {
        stack_.pop_back();
        keys_.pop_back();
        handOver();
        return true;
    }

    template <typename Value> bool addWhole(Value&& value) {
        const bool added = add(std::forward<Value>(value)) != nullptr;
        handOver();
        return added;
    }

    /// A member of the document that has just been finished goes to the caller.
    void handOver() {
        if (member_ == nullptr || stack_.size() != 1 || !root_.is_object()) {
            return;
        }
        auto& members = root_.template get_ref<typename Json::object_t&>();
        for (auto& [key, value] : members) {
            (*member_)(key, std::move(value));
        }
        members.clear();
    }

    const JsonLimits& limits_;
    const MemberOf<Json>* member_;
    Json root_;
    std::vector<Json*> stack_;
    std::vector<std::unordered_set<std::string>> keys_; ///< of the open objects, where these are lists
    Json* slot_ = nullptr;                              ///< value of the key just read
    std::size_t values_ = 0;
    std::string problem_;
};

[[noreturn]] void failAt(const std::string& name, std::string_view text, std::size_t offset, std::int64_t firstLine,
                         std::string_view what) {
    const std::string_view before = text.substr(0, offset);
    const auto line = std::count(before.begin(), before.end(), '\n') + firstLine;
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = newline == std::string_view::npos ? offset + 1 : offset - newline;
    throw BadInput(fmt::format("{}: line {}, column {}: {}", name, line, column, what));
}

template <typename Json>
Json build(std::string_view text, const std::string& name, const JsonLimits& limits, const MemberOf<Json>* member) {
    if (text.size() > limits.maxBytes) {
        throw BadInput(fmt::format("{}: JSON of {} bytes is larger than the limit of {} bytes", name, text.size(),
                                   limits.maxBytes));
    }
    if (text.starts_with("\xEF\xBB\xBF")) {
        failAt(name, text, 0, limits.firstLine, "starts with a byte order mark; save it as UTF-8 without one");
    }
    // The parser takes a NUL byte for the end and would ignore what follows.
    const std::size_t nul = text.find('\0');
    if (nul != std::string_view::npos) {
        failAt(name, text, nul, limits.firstLine, "a NUL byte is no JSON");
    }
    const char* const begin = text.data();
    const char* reached = begin;
    Builder<Json> builder(limits, member);
    const bool done = Json::sax_parse(TrackedIterator(begin, &reached), TrackedIterator(begin + text.size(), &reached),
                                      &builder, Json::input_format_t::json, true);
    if (!done) {
        const auto read = static_cast<std::size_t>(reached - begin);
        failAt(name, text, read > 0 ? read - 1 : 0, limits.firstLine, builder.problem());
    }
    return builder.takeResult();
}

std::string readWhole(const std::string& path, const JsonLimits& limits) {
    const std::uint64_t size = regularFileBytes(path);
    if (size > limits.maxBytes) {
        throw BadInput(
            fmt::format("{}: JSON of {} bytes is larger than the limit of {} bytes", path, size, limits.maxBytes));
    }
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text(static_cast<std::size_t>(size), '\0');
    if (!file || !file.read(text.data(), static_cast<std::streamsize>(text.size()))) {
        throw BadInput(fmt::format("{}: cannot be read: {}", path,
                                   errno != 0 ? std::strerror(errno) : "it became shorter while it was read"));
    }
    return text;
}

} // namespace

json parseStrictJson(std::string_view text, const std::string& name, const JsonLimits& limits) {
    return build<json>(text, name, limits, nullptr);
}

ordered_json parseOrderedJson(std::string_view text, const std::string& name, const JsonLimits& limits) {
    return build<ordered_json>(text, name, limits, nullptr);
}

void forStrictMembers(std::string_view text, const std::string& name, const JsonLimits& limits,
                      const JsonMember& member) {
    if (!build<json>(text, name, limits, &member).is_object()) {
        throw BadInput(name + ": is no JSON object");
    }
}

json readStrictJson(const std::string& path, const JsonLimits& limits) {
    return parseStrictJson(readWhole(path, limits), path, limits);
}

ordered_json readOrderedJson(const std::string& path, const JsonLimits& limits) {
    return parseOrderedJson(readWhole(path, limits), path, limits);
}

json readStrictJson(std::istream& input, const std::string& name, const JsonLimits& limits) {
    constexpr std::size_t kPiece = 65536;
    std::string text;
    while (input) {
        const std::size_t before = text.size();
        text.resize(before + kPiece);
        input.read(text.data() + before, kPiece);
        text.resize(before + static_cast<std::size_t>(input.gcount()));
        if (text.size() > limits.maxBytes) {
            throw BadInput(fmt::format("{}: JSON is larger than the limit of {} bytes", name, limits.maxBytes));
        }
    }
    return parseStrictJson(text, name, limits);
}

} // namespace vitrine::base
