// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/regex_translate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/tokenizer/regex_properties.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

namespace {

// PCRE2's own \s also takes U+180E, and its \w has no marks and no connectors: both are spelled out.
constexpr std::string_view kSpaceItems =
    "\\t-\\r\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr std::string_view kWordItems = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
// Outside of a class Oniguruma also takes the Latin-1 superscripts and fractions for word characters.
constexpr std::string_view kBareWordItems = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";
constexpr std::string_view kHexItems = "0-9A-Fa-f";

class Translator {
public:
    Translator(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

    std::string run() {
        while (at_ < in_.size()) {
            step();
        }
        return std::move(out_);
    }

private:
    [[noreturn]] void unsupported(std::string_view what) const {
        throw base::Unsupported(fmt::format("{}: {}", where_, what));
    }
    [[noreturn]] void bad(std::string_view what) const { throw base::BadInput(fmt::format("{}: {}", where_, what)); }

    char peek(std::size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
    bool startsWith(std::string_view text) const { return in_.substr(at_).substr(0, text.size()) == text; }
    void copyCodePoint() {
        const std::size_t bytes = std::min(utf8Length(in_[at_]), in_.size() - at_);
        out_ += in_.substr(at_, bytes);
        at_ += bytes;
    }
    void beginAtom() { atom_ = out_.size(); }

    void step() {
        switch (peek()) {
        case '\\':
            beginAtom();
            escape();
            return;
        case '[':
            beginAtom();
            characterClass();
            return;
        case '(':
            openGroup();
            return;
        case ')':
            atom_ = groups_.empty() ? out_.size() : groups_.back();
            if (!groups_.empty()) {
                groups_.pop_back();
            }
            copyCodePoint();
            return;
        case '{':
            interval();
            return;
        case '*':
        case '+':
        case '?':
        case '|':
            copyCodePoint();
            return;
        default:
            beginAtom();
            copyCodePoint();
            return;
        }
    }

    void openGroup() {
        if (startsWith("(*")) {
            unsupported("the regular expression uses a verb or callout \"(*\"");
        }
        groups_.push_back(out_.size());
        copyCodePoint();
        if (peek() != '?') {
            return;
        }
        copyCodePoint();
        if (peek() == '~' || peek() == '@') {
            unsupported("the regular expression uses a group that only Oniguruma has");
        }
        // Option letters: Oniguruma's "m" lets the dot match line ends, which PCRE2 calls "s".
        while (std::isalpha(static_cast<unsigned char>(peek())) != 0 || peek() == '-') {
            if (std::string_view("imx-").find(peek()) == std::string_view::npos) {
                if (peek() == 'P' && peek(1) == '<') {
                    break;
                }
                unsupported(fmt::format("the regular expression uses the option \"{}\"", peek()));
            }
            out_ += peek() == 'm' ? 's' : peek();
            ++at_;
        }
        if (peek() == ')') {
            groups_.pop_back(); // an option setting has no content of its own
            copyCodePoint();
            beginAtom();
        } else if (peek() == '<' || peek() == ':' || peek() == '=' || peek() == '!' || peek() == '>') {
            copyCodePoint();
        }
    }

    /// "{n,m}+" repeats the repetition in Oniguruma, and "{n}?" makes it optional; PCRE2 reads both otherwise.
    void interval() {
        std::size_t end = at_ + 1;
        std::string low, high;
        bool comma = false;
        while (end < in_.size() &&
               (std::isdigit(static_cast<unsigned char>(in_[end])) != 0 || (in_[end] == ',' && !comma))) {
            if (in_[end] == ',') {
                comma = true;
            } else {
                (comma ? high : low) += in_[end];
            }
            ++end;
        }
        if (end >= in_.size() || in_[end] != '}' || (low.empty() && high.empty())) {
            beginAtom();
            out_ += "\\{";
            ++at_;
            return;
        }
        at_ = end + 1;
        const std::string repeat = "{" + (low.empty() ? "0" : low) + (comma ? "," + high : "") + "}";
        const bool again = peek() == '+' || (peek() == '?' && !comma);
        if (again) {
            out_.insert(atom_, "(?:");
            out_ += repeat + ")";
        } else {
            out_ += repeat;
        }
    }

    void escape() {
        const char next = peek(1);
        switch (next) {
        case '\0':
            bad("the regular expression ends with a backslash");
        case 's':
            out_ += fmt::format("[{}]", kSpaceItems);
            break;
        case 'S':
            out_ += fmt::format("[^{}]", kSpaceItems);
            break;
        case 'w':
            out_ += fmt::format("[{}]", kBareWordItems);
            break;
        case 'W':
            out_ += fmt::format("[^{}]", kBareWordItems);
            break;
        case 'h':
            out_ += fmt::format("[{}]", kHexItems);
            break;
        case 'H':
            out_ += fmt::format("[^{}]", kHexItems);
            break;
        case 'b':
            out_ += fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kBareWordItems);
            break;
        case 'B':
            out_ += fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kBareWordItems);
            break;
        case 'O':
            out_ += "(?s:.)";
            break;
        default:
            sharedEscape();
            return;
        }
        at_ += 2;
    }

    /// Escapes that mean the same inside and outside of a class.
    void sharedEscape() {
        const char next = peek(1);
        if (next == 'p' || next == 'P') {
            out_ += property();
            return;
        }
        if (next == 'u') {
            const std::string_view digits = in_.substr(std::min(at_ + 2, in_.size()), 4);
            const auto hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
            if (digits.size() != 4 || !std::all_of(digits.begin(), digits.end(), hex)) {
                bad("the regular expression has \"\\u\" without four hexadecimal digits");
            }
            out_ += fmt::format("\\x{{{}}}", digits);
            at_ += 6;
            return;
        }
        constexpr std::string_view kShared = "dDtnrfveaAzZGKkgxRXNcb0123456789";
        const bool letter = std::isalnum(static_cast<unsigned char>(next)) != 0;
        if (letter && kShared.find(next) == std::string_view::npos) {
            unsupported(fmt::format("the regular expression uses the escape \"\\{}\"", next));
        }
        ++at_;
        if (static_cast<unsigned char>(next) < 0x80) {
            out_ += '\\';
            out_ += next == 'v' ? 'x' : next;
            if (next == 'v') {
                out_ += "0b"; // a vertical tab in Oniguruma, a whole class in PCRE2
            }
            ++at_;
        } else {
            copyCodePoint();
        }
    }

    std::string property() {
        bool negated = peek(1) == 'P';
        at_ += 2;
        std::string name;
        if (peek() == '{') {
            const std::size_t end = in_.find('}', at_);
            if (end == std::string_view::npos) {
                bad("the regular expression has a \"\\p{\" without its \"}\"");
            }
            for (const char c : in_.substr(at_ + 1, end - at_ - 1)) {
                if (c == '^' && name.empty()) {
                    negated = !negated;
                } else if (c != ' ' && c != '_' && c != '-') {
                    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
                }
            }
            at_ = end + 1;
        } else {
            name = std::string(1, static_cast<char>(std::tolower(static_cast<unsigned char>(peek()))));
            ++at_;
        }
        const std::string translated = pcreProperty(name);
        if (translated.empty()) {
            bad("the regular expression has a \"\\p{...}\" with a name that is not a property");
        }
        return fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', translated);
    }

    void characterClass() {
        const ClassSet set = parseClass(0);
        out_ += set.matcher;
    }

    /// A class: what matches one of its characters, and its items where it is a plain list that another may take up.
    struct ClassSet {
        std::string matcher;
        std::string items;
        bool plain = false; ///< no intersection, no class inside that is none of items, not negated
    };

    /// What stands between two "&&": items of a PCRE2 class, and matchers of classes that items cannot say.
    struct ClassOperand {
        std::string items;
        std::vector<std::string> others;
        bool afterSet = false; ///< the last item is no character, so that "-" cannot begin a range

        void addSet(std::string_view setItems) {
            items += setItems;
            afterSet = true;
        }
        void addOther(std::string matcher) {
            others.push_back(std::move(matcher));
            afterSet = true;
        }
        std::string matcher(bool negated) const {
            if (others.empty()) {
                return items.empty() ? (negated ? "(?s:.)" : "(?!)") : fmt::format("[{}{}]", negated ? "^" : "", items);
            }
            std::string out = items.empty() ? std::string() : fmt::format("[{}]", items);
            for (const std::string& other : others) {
                out += (out.empty() ? "" : "|") + other;
            }
            return negated ? fmt::format("(?:(?!{})(?s:.))", out) : fmt::format("(?:{})", out);
        }
    };

    /// PCRE2 has no intersections and no classes inside of classes: a character must pass look-aheads instead.
    static ClassSet joinOperands(const std::vector<ClassOperand>& operands, bool negated) {
        if (operands.size() == 1) {
            const bool plain = !negated && operands[0].others.empty();
            return {operands[0].matcher(negated), operands[0].items, plain};
        }
        std::string all;
        for (std::size_t i = 0; i + 1 < operands.size(); ++i) {
            all += fmt::format("(?={})", operands[i].matcher(false));
        }
        all += operands.back().matcher(false);
        return {negated ? fmt::format("(?:(?!{})(?s:.))", all) : fmt::format("(?:{})", all), {}, false};
    }

    /// Reads from a "[" to its "]".
    ClassSet parseClass(int depth) {
        constexpr int kDeepest = 16;
        if (depth > kDeepest) {
            unsupported("the regular expression has too many classes inside of one another");
        }
        ++at_;
        const bool negated = peek() == '^';
        at_ += negated ? 1 : 0;
        std::vector<ClassOperand> operands(1);
        if (peek() == ']') {
            operands.back().items += "\\]";
            ++at_;
        }
        while (peek() != ']' || at_ >= in_.size()) {
            if (at_ >= in_.size()) {
                bad("the regular expression has a \"[\" without its \"]\"");
            }
            if (startsWith("&&")) {
                at_ += 2;
                operands.emplace_back();
            } else {
                classItem(operands.back(), depth);
            }
        }
        ++at_;
        return joinOperands(operands, negated);
    }

    void classItem(ClassOperand& operand, int depth) {
        if (startsWith("[:") && in_.find(":]", at_) != std::string_view::npos) {
            posixClass(operand);
        } else if (peek() == '[') {
            ClassSet set = parseClass(depth + 1);
            if (set.plain) {
                operand.addSet(set.items);
            } else {
                operand.addOther(std::move(set.matcher));
            }
        } else if (peek() == '\\') {
            classEscape(operand);
        } else {
            const bool first = operand.afterSet || operand.items.empty();
            if (peek() == '-' && peek(1) == '[' && !first) { // Oniguruma forgets what stands before it
                unsupported("the regular expression has a range that ends in a class");
            }
            const bool last = peek(1) == ']' || in_.substr(at_ + 1).starts_with("&&");
            const bool literalDash = peek() == '-' && (first || last);
            if (literalDash) {
                operand.items += '\\';
            }
            moveTo(operand.items, [&] { copyCodePoint(); });
            operand.afterSet = false;
        }
    }

    /// What `write` appends to out_ goes to `items`.
    template <class Write> void moveTo(std::string& items, Write write) {
        const std::size_t before = out_.size();
        write();
        items += out_.substr(before);
        out_.resize(before);
    }

    void posixClass(ClassOperand& operand) {
        constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kItems = {{
            {"space", kSpaceItems},
            {"word", kWordItems},
            {"alpha", "\\p{Alphabetic}"},
            {"alnum", "\\p{Alphabetic}\\p{Nd}"},
            {"upper", "\\p{Uppercase}"},
            {"lower", "\\p{Lowercase}"},
            {"digit", "\\p{Nd}"},
            {"xdigit", kHexItems},
            {"ascii", "\\x00-\\x7f"},
        }};
        const std::size_t end = in_.find(":]", at_) + 2;
        const std::string_view whole = in_.substr(at_, end - at_);
        std::string_view name = whole.substr(2, whole.size() - 4);
        const bool negated = name.starts_with('^');
        name.remove_prefix(negated ? 1 : 0);
        const auto* found = std::find_if(kItems.begin(), kItems.end(), [&](const auto& i) { return i.first == name; });
        at_ = end;
        if (found == kItems.end()) {
            operand.addSet(whole);
        } else if (negated) {
            operand.addOther(fmt::format("[^{}]", found->second));
        } else {
            operand.addSet(found->second);
        }
    }

    void classEscape(ClassOperand& operand) {
        switch (peek(1)) {
        case 's':
            operand.addSet(kSpaceItems);
            break;
        case 'S':
            operand.addSet("\\P{White_Space}");
            break;
        case 'w':
            operand.addSet(kWordItems);
            break;
        case 'W':
            operand.addOther(fmt::format("[^{}]", kWordItems));
            break;
        case 'h':
            operand.addSet(kHexItems);
            break;
        case 'H':
            operand.addOther(fmt::format("[^{}]", kHexItems));
            break;
        default: {
            const bool set = std::string_view("pPdD").find(peek(1)) != std::string_view::npos;
            moveTo(operand.items, [&] { sharedEscape(); });
            operand.afterSet = set;
            return;
        }
        }
        at_ += 2;
    }

    std::string_view in_;
    const std::string& where_;
    std::string out_;
    std::size_t at_ = 0;
    std::size_t atom_ = 0;            ///< where the last atom begins in out_
    std::vector<std::size_t> groups_; ///< where the open groups begin in out_
};

} // namespace

std::string translateOnigurumaPattern(std::string_view pattern, const std::string& where) {
    return Translator(pattern, where).run();
}

} // namespace vitrine::engine
