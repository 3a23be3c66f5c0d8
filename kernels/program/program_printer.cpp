// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Programs as Python. Nodes are printed in their order, never recursively: a program may be 20,000 nodes deep.

#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "kernels/program/emitter.h"

namespace vitrine::kernels {

namespace {

/// Python's precedence, loosest first.
constexpr int kComparison = 0;
constexpr int kBitOr = 1;
constexpr int kBitXor = 2;
constexpr int kBitAnd = 3;
constexpr int kShift = 4;
constexpr int kSum = 5;
constexpr int kProduct = 6;
constexpr int kSign = 7;
constexpr int kPower = 8;
constexpr int kAtom = 9;

struct Text {
    std::string text;
    int precedence = kAtom;
};

constexpr std::size_t kLongestExpression = 2000;
constexpr std::size_t kLongestPart = 160; ///< longer ones get a name of their own

std::string numberText(const ProgramNode& node) {
    if (node.type == ProgramType::Bool) {
        return node.integer != 0 ? "True" : "False";
    }
    if (node.type != ProgramType::Float) {
        return std::to_string(node.integer);
    }
    if (std::isnan(node.real)) {
        return "float(\"nan\")";
    }
    if (std::isinf(node.real)) {
        return node.real > 0 ? "float(\"inf\")" : "-float(\"inf\")";
    }
    std::string text = fmt::format("{}", node.real);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

/// Of an operation with a symbol.
int precedenceOf(ProgramOp op) {
    switch (op) {
    case ProgramOp::Add:
    case ProgramOp::Sub:
        return kSum;
    case ProgramOp::Mul:
    case ProgramOp::Div:
    case ProgramOp::FloorDiv:
    case ProgramOp::Mod:
        return kProduct;
    case ProgramOp::Pow:
        return kPower;
    case ProgramOp::And:
        return kBitAnd;
    case ProgramOp::Or:
        return kBitOr;
    case ProgramOp::Xor:
        return kBitXor;
    case ProgramOp::ShiftLeft:
    case ProgramOp::ShiftRight:
        return kShift;
    default:
        return kComparison;
    }
}

std::string_view inputName(ProgramOp op) {
    switch (op) {
    case ProgramOp::Score:
        return "score";
    case ProgramOp::Batch:
        return "b";
    case ProgramOp::Head:
        return "h";
    case ProgramOp::Query:
        return "q_idx";
    case ProgramOp::Key:
        return "kv_idx";
    default:
        return "grad";
    }
}

class Printer {
public:
    explicit Printer(const Program& program)
        : program_(program), inputs_(inputsOf(program)), texts_(program.nodes.size()) {}

    const std::string& text(std::int32_t node) const { return texts_[static_cast<std::size_t>(node)].text; }
    void setText(std::int32_t node, Text text) { texts_[static_cast<std::size_t>(node)] = std::move(text); }

    void print(std::int32_t index) {
        const ProgramNode& node = program_.at(index);
        Text out;
        switch (node.op) {
        case ProgramOp::Constant:
            out.text = numberText(node);
            out.precedence = out.text.front() == '-' ? kSign : kAtom;
            break;
        case ProgramOp::Scalar:
        case ProgramOp::Load:
            out.text = loadText(node);
            break;
        case ProgramOp::Select:
            out.text =
                fmt::format("torch.where({}, {}, {})", text(node.args[0]), text(node.args[1]), text(node.args[2]));
            break;
        case ProgramOp::Cast:
            out.text = fmt::format("{}.to(torch.{})", wrapped(node.args[0], kAtom),
                                   node.type == ProgramType::Float ? "float32" : programTypeName(node.type));
            break;
        case ProgramOp::Neg:
            out = {fmt::format("-{}", wrapped(node.args[0], kSign)), kSign};
            break;
        case ProgramOp::Not:
            out = {fmt::format("~{}", wrapped(node.args[0], kSign)), kSign};
            break;
        case ProgramOp::Min:
        case ProgramOp::Max:
            out.text = fmt::format("torch.{}({}, {})", node.op == ProgramOp::Min ? "minimum" : "maximum",
                                   text(node.args[0]), text(node.args[1]));
            break;
        case ProgramOp::Atan2:
            out.text = fmt::format("torch.atan2({}, {})", text(node.args[0]), text(node.args[1]));
            break;
        default:
            out = operation(node);
        }
        if (out.text.size() > kLongestExpression) {
            out = {"...", kAtom};
        }
        setText(index, std::move(out));
    }

private:
    std::string loadText(const ProgramNode& node) const {
        std::string out = program_.captures[static_cast<std::size_t>(node.capture)].name;
        const char* before = "[";
        for (const std::int32_t arg : argsOf(node)) {
            out += before + text(arg);
            before = ", ";
        }
        return node.op == ProgramOp::Load ? out + "]" : out;
    }

    std::string wrapped(std::int32_t node, int least) const {
        const Text& part = texts_[static_cast<std::size_t>(node)];
        return part.precedence < least ? fmt::format("({})", part.text) : part.text;
    }

    Text operation(const ProgramNode& node) const {
        std::string_view symbol = programOpSymbol(node.op);
        const int precedence = precedenceOf(node.op);
        if (symbol.empty()) {
            return node.args[0] < 0 ? Text{std::string(inputName(node.op))}
                                    : Text{fmt::format("torch.{}({})", programOpName(node.op), text(node.args[0]))};
        }
        std::int32_t left = node.args[0];
        std::int32_t right = node.args[1];
        if ((node.op == ProgramOp::Lt || node.op == ProgramOp::Le) && readsBetterSwapped(left, right)) {
            std::swap(left, right);
            symbol = node.op == ProgramOp::Lt ? ">" : ">=";
        }
        const std::int32_t plainLeft = withoutCast(node, left, right);
        const std::int32_t plainRight = plainLeft == left ? withoutCast(node, right, left) : right;
        // Sums and products group from the left, a power from the right, comparisons not at all.
        const bool fromLeft = precedence != kComparison && precedence != kPower;
        return {fmt::format("{} {} {}", wrapped(plainLeft, precedence + (fromLeft ? 0 : 1)), symbol,
                            wrapped(plainRight, precedence + (precedence == kPower ? 0 : 1))),
                precedence};
    }

    /// "q_idx >= kv_idx" and "score > 0", as people write them.
    bool readsBetterSwapped(std::int32_t left, std::int32_t right) const {
        constexpr unsigned kAny = kOnScore | kOnBatch | kOnHead | kOnQuery | kOnKey | kOnUpstream;
        const unsigned a = inputs_[static_cast<std::size_t>(left)];
        const unsigned b = inputs_[static_cast<std::size_t>(right)];
        return ((a & kOnQuery) == 0 && (b & kOnQuery) != 0) || ((a & kAny) == 0 && (b & kAny) != 0);
    }

    /// What is under a cast that Python makes by itself: of `arg`, because of the other operand.
    std::int32_t withoutCast(const ProgramNode& node, std::int32_t arg, std::int32_t other) const {
        const ProgramNode& cast = program_.at(arg);
        if (cast.op != ProgramOp::Cast || cast.type < program_.at(cast.args[0]).type) {
            return arg;
        }
        const ProgramNode& beside = program_.at(other);
        const bool integerConstant = beside.op == ProgramOp::Constant && beside.type != ProgramType::Float;
        return node.op == ProgramOp::Div || !integerConstant ? cast.args[0] : arg;
    }

    const Program& program_;
    std::vector<unsigned> inputs_;
    std::vector<Text> texts_;
};

/// Marks what `root` needs.
std::vector<std::int32_t> usesBelow(const Program& program, std::int32_t root) {
    std::vector<std::int32_t> uses(program.nodes.size(), 0);
    uses[static_cast<std::size_t>(root)] = 1;
    for (std::size_t i = static_cast<std::size_t>(root) + 1; i-- > 0;) {
        if (uses[i] > 0) {
            for (const std::int32_t arg : argsOf(program.nodes[i])) {
                ++uses[static_cast<std::size_t>(arg)];
            }
        }
    }
    return uses;
}

} // namespace

std::string printNode(const Program& program, std::int32_t node) {
    Printer printer(program);
    const std::vector<std::int32_t> uses = usesBelow(program, node);
    for (std::int32_t i = 0; i <= node; ++i) {
        if (uses[static_cast<std::size_t>(i)] > 0) {
            printer.print(i);
        }
    }
    return printer.text(node);
}

std::string printProgram(const Program& program, std::string_view name) {
    Printer printer(program);
    const std::vector<std::int32_t> uses = usesBelow(program, program.result);
    std::string body;
    int names = 0;
    for (std::int32_t i = 0; i <= program.result; ++i) {
        if (uses[static_cast<std::size_t>(i)] == 0) {
            continue;
        }
        printer.print(i);
        const bool named = i != program.result && program.at(i).args[0] >= 0 &&
                           (uses[static_cast<std::size_t>(i)] > 1 || printer.text(i).size() > kLongestPart);
        if (named) {
            std::string variable = fmt::format("t{}", names++);
            body += fmt::format("    {} = {}\n", variable, printer.text(i));
            printer.setText(i, {std::move(variable), kAtom});
        }
    }
    return fmt::format("def {}({}b, h, q_idx, kv_idx):\n{}    return {}\n", name, program.isMask() ? "" : "score, ",
                       body, printer.text(program.result));
}

} // namespace vitrine::kernels
