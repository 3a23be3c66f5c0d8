// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/expression.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "base/error.h"
#include "kernels/core/dtype.h"
#include "kernels/core/weight_view.h"

namespace vitrine::kernels {

namespace {

using Kind = Expression::Node::Kind;

constexpr std::size_t kMaxText = 4096;
constexpr int kMaxDepth = 64;
constexpr int kMaxOperators = 512;

/// The dtypes that device code may meet, by the names of safetensors headers.
constexpr std::array<std::pair<std::string_view, DType>, 15> kDtypes = {{{"F64", DType::F64},
                                                                         {"F32", DType::F32},
                                                                         {"BF16", DType::BF16},
                                                                         {"F16", DType::F16},
                                                                         {"I64", DType::I64},
                                                                         {"I32", DType::I32},
                                                                         {"I16", DType::I16},
                                                                         {"I8", DType::I8},
                                                                         {"U8", DType::U8},
                                                                         {"U16", DType::U16},
                                                                         {"U32", DType::U32},
                                                                         {"U64", DType::U64},
                                                                         {"NONE", DType::None},
                                                                         {"BOOL", DType::Bool},
                                                                         {"F8_E4M3", DType::F8E4M3}}};

struct Operator {
    std::string_view text;
    Kind kind;
};

/// Binary operators by precedence, weakest first; longer spellings before their prefixes.
const std::vector<std::vector<Operator>>& operators() {
    static const std::vector<std::vector<Operator>> kLevels = {
        {{"||", Kind::Or}},
        {{"&&", Kind::And}},
        {{"==", Kind::Equal}, {"!=", Kind::NotEqual}},
        {{"<=", Kind::LessEqual}, {">=", Kind::GreaterEqual}, {"<", Kind::Less}, {">", Kind::Greater}},
        {{"+", Kind::Add}, {"-", Kind::Subtract}},
        {{"*", Kind::Multiply}, {"/", Kind::Divide}, {"%", Kind::Modulo}}};
    return kLevels;
}

bool isNameStart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

class Parser {
public:
    Parser(std::string_view text, std::vector<Expression::Node>& nodes, std::vector<std::string>& names)
        : text_(text), nodes_(nodes), names_(names) {}

    int parse() {
        if (text_.size() > kMaxText) {
            fail(fmt::format("an expression has at most {} characters", kMaxText));
        }
        const int root = choice(0);
        skip();
        if (at_ < text_.size()) {
            fail(fmt::format("unexpected '{}'", text_[at_]));
        }
        return root;
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw base::BadInput(fmt::format("column {}: {}", at_ + 1, what));
    }
    void skip() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
            ++at_;
        }
    }
    bool take(std::string_view token) {
        skip();
        if (!text_.substr(at_).starts_with(token)) {
            return false;
        }
        at_ += token.size();
        return true;
    }
    void expect(std::string_view token) {
        if (!take(token)) {
            fail(fmt::format("'{}' is expected", token));
        }
    }
    int add(Kind kind, int a = -1, int b = -1, int c = -1, std::int64_t value = 0) {
        nodes_.push_back({kind, value, a, b, c});
        return static_cast<int>(nodes_.size()) - 1;
    }

    int choice(int depth) {
        if (depth > kMaxDepth) {
            fail(fmt::format("nested deeper than {} levels", kMaxDepth));
        }
        const int condition = binary(0, depth);
        if (!take("?")) {
            return condition;
        }
        const int yes = choice(depth + 1);
        expect(":");
        const int no = choice(depth + 1);
        return add(Kind::Choose, condition, yes, no);
    }

    int binary(std::size_t level, int depth) {
        if (level == operators().size()) {
            return unary(depth);
        }
        int left = binary(level + 1, depth);
        for (;;) {
            const auto& spellings = operators()[level];
            const auto found =
                std::find_if(spellings.begin(), spellings.end(), [&](const Operator& item) { return take(item.text); });
            if (found == spellings.end()) {
                return left;
            }
            const int right = binary(level + 1, depth);
            left = add(found->kind, left, right);
            // A long chain is as deep for evaluation as it is long.
            if (++used_ > kMaxOperators) {
                fail(fmt::format("more than {} operators", kMaxOperators));
            }
        }
    }

    int unary(int depth) {
        if (depth > kMaxDepth) {
            fail(fmt::format("nested deeper than {} levels", kMaxDepth));
        }
        if (take("-")) {
            return add(Kind::Negate, unary(depth + 1));
        }
        if (take("!")) {
            return add(Kind::Not, unary(depth + 1));
        }
        return primary(depth);
    }

    int primary(int depth) {
        skip();
        if (at_ == text_.size()) {
            fail("the expression ends too early");
        }
        if (take("(")) {
            const int inner = choice(depth + 1);
            expect(")");
            return inner;
        }
        if (isDigit(text_[at_])) {
            return number();
        }
        if (isNameStart(text_[at_])) {
            return name(depth);
        }
        fail(fmt::format("unexpected '{}'", text_[at_]));
    }

    int number() {
        std::int64_t value = 0;
        for (; at_ < text_.size() && isDigit(text_[at_]); ++at_) {
            if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
                __builtin_add_overflow(value, std::int64_t{text_[at_] - '0'}, &value)) {
                fail("the number does not fit 64 bits");
            }
        }
        if (at_ < text_.size() && isNameStart(text_[at_])) {
            fail("a number is followed by a letter");
        }
        return add(Kind::Number, -1, -1, -1, value);
    }

    int name(int depth) {
        const std::size_t begin = at_;
        while (at_ < text_.size() && (isNameStart(text_[at_]) || isDigit(text_[at_]))) {
            ++at_;
        }
        const std::string_view word = text_.substr(begin, at_ - begin);
        if (take("(")) {
            return call(word, depth);
        }
        for (const auto& [dtype, value] : kDtypes) {
            if (word == dtype) {
                return add(Kind::Number, -1, -1, -1, static_cast<std::int64_t>(value));
            }
        }
        for (const WeightFormatName& format : weightFormatNames()) {
            if (word == format.name) {
                return add(Kind::Number, -1, -1, -1, static_cast<std::int64_t>(format.format));
            }
        }
        const auto known = std::find(names_.begin(), names_.end(), word);
        const auto place = known - names_.begin();
        if (known == names_.end()) {
            names_.emplace_back(word);
        }
        return add(Kind::Name, -1, -1, -1, place);
    }

    int call(std::string_view word, int depth) {
        const Kind kind = word == "min"        ? Kind::Min
                          : word == "max"      ? Kind::Max
                          : word == "ceil_div" ? Kind::CeilDiv
                                               : Kind::Number;
        if (kind == Kind::Number) {
            fail(fmt::format("there is no function '{}'; use min, max or ceil_div", word));
        }
        const int a = choice(depth + 1);
        expect(",");
        const int b = choice(depth + 1);
        expect(")");
        return add(kind, a, b);
    }

    std::string_view text_;
    std::vector<Expression::Node>& nodes_;
    std::vector<std::string>& names_;
    std::size_t at_ = 0;
    int used_ = 0;
};

[[noreturn]] void failEvaluation(const std::string& what) {
    throw base::BadInput(what);
}

std::int64_t divide(std::int64_t a, std::int64_t b, bool remainder) {
    if (b == 0) {
        failEvaluation("division by zero");
    }
    if (a == std::numeric_limits<std::int64_t>::min() && b == -1) {
        failEvaluation("a value does not fit 64 bits");
    }
    return remainder ? a % b : a / b;
}

std::int64_t ceilDivide(std::int64_t a, std::int64_t b) {
    const std::int64_t quotient = divide(a, b, false);
    const bool up = a % b != 0 && (a > 0) == (b > 0);
    return quotient + (up ? 1 : 0);
}

std::int64_t apply(Kind kind, std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    bool overflow = false;
    switch (kind) {
    case Kind::Add:
        overflow = __builtin_add_overflow(a, b, &out);
        break;
    case Kind::Subtract:
        overflow = __builtin_sub_overflow(a, b, &out);
        break;
    case Kind::Multiply:
        overflow = __builtin_mul_overflow(a, b, &out);
        break;
    case Kind::Divide:
        return divide(a, b, false);
    case Kind::Modulo:
        return divide(a, b, true);
    case Kind::CeilDiv:
        return ceilDivide(a, b);
    case Kind::Less:
        return a < b ? 1 : 0;
    case Kind::LessEqual:
        return a <= b ? 1 : 0;
    case Kind::Greater:
        return a > b ? 1 : 0;
    case Kind::GreaterEqual:
        return a >= b ? 1 : 0;
    case Kind::Equal:
        return a == b ? 1 : 0;
    case Kind::NotEqual:
        return a != b ? 1 : 0;
    case Kind::Min:
        return std::min(a, b);
    case Kind::Max:
        return std::max(a, b);
    default:
        throw base::Internal("an expression has a node that is no operator");
    }
    if (overflow) {
        failEvaluation("a value does not fit 64 bits");
    }
    return out;
}

} // namespace

Expression::Expression() : nodes_(1) {}

Expression Expression::parse(std::string_view text) {
    Expression expression;
    expression.text_ = std::string(text);
    expression.nodes_.clear();
    expression.root_ = Parser(expression.text_, expression.nodes_, expression.names_).parse();
    return expression;
}

std::int64_t Expression::evaluate(const Lookup& lookup) const {
    return evaluate(root_, lookup);
}

std::int64_t Expression::evaluate(int index, const Lookup& lookup) const {
    const Node& node = nodes_[static_cast<std::size_t>(index)];
    switch (node.kind) {
    case Kind::Number:
        return node.value;
    case Kind::Name: {
        const std::string& name = names_[static_cast<std::size_t>(node.value)];
        const std::optional<std::int64_t> value = lookup(name);
        if (!value) {
            failEvaluation(fmt::format("there is no variable '{}'", name));
        }
        return *value;
    }
    case Kind::Negate:
        return apply(Kind::Subtract, 0, evaluate(node.a, lookup));
    case Kind::Not:
        return evaluate(node.a, lookup) == 0 ? 1 : 0;
    case Kind::And:
        return evaluate(node.a, lookup) != 0 && evaluate(node.b, lookup) != 0 ? 1 : 0;
    case Kind::Or:
        return evaluate(node.a, lookup) != 0 || evaluate(node.b, lookup) != 0 ? 1 : 0;
    case Kind::Choose:
        return evaluate(evaluate(node.a, lookup) != 0 ? node.b : node.c, lookup);
    default:
        return apply(node.kind, evaluate(node.a, lookup), evaluate(node.b, lookup));
    }
}

} // namespace vitrine::kernels
