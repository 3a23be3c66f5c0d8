// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/program.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <iterator>

#include "base/error.h"

namespace vitrine::kernels {

namespace {

constexpr std::array<std::string_view, 51> kOpNames = {
    "score", "batch", "head",       "query",       "key",     "upstream", "constant", "scalar", "load",
    "add",   "sub",   "mul",        "floor_div",   "mod",     "min",      "max",      "pow",    "neg",
    "abs",   "sign",  "div",        "atan2",       "exp",     "exp2",     "expm1",    "log",    "log2",
    "log1p", "sqrt",  "rsqrt",      "tanh",        "sigmoid", "sin",      "cos",      "erf",    "floor",
    "ceil",  "round", "trunc",      "lt",          "le",      "eq",       "ne",       "and",    "or",
    "xor",   "not",   "shift_left", "shift_right", "select",  "cast"};
static_assert(static_cast<std::size_t>(ProgramOp::Cast) + 1 == kOpNames.size());

unsigned ownInputs(const ProgramNode& node) {
    switch (node.op) {
    case ProgramOp::Score:
        return kOnScore;
    case ProgramOp::Batch:
        return kOnBatch;
    case ProgramOp::Head:
        return kOnHead;
    case ProgramOp::Query:
        return kOnQuery;
    case ProgramOp::Key:
        return kOnKey;
    case ProgramOp::Upstream:
        return kOnUpstream;
    case ProgramOp::Scalar:
    case ProgramOp::Load:
        return kOnCaptures;
    default:
        return 0;
    }
}

std::string_view expectedDtypes(ProgramType type) {
    switch (type) {
    case ProgramType::Bool:
        return "bool";
    case ProgramType::Int32:
        return "int32, int16, int8 or uint8";
    case ProgramType::Int64:
        return "int64";
    case ProgramType::Float:
        return "float32, float64, bfloat16 or float16";
    }
    return "";
}

} // namespace

std::optional<ProgramType> loadedType(DType dtype) {
    switch (dtype) {
    case DType::F32:
    case DType::F64:
    case DType::BF16:
    case DType::F16:
        return ProgramType::Float;
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::U8:
        return ProgramType::Int32;
    case DType::I64:
        return ProgramType::Int64;
    case DType::Bool:
        return ProgramType::Bool;
    default:
        return std::nullopt;
    }
}

std::vector<unsigned> inputsOf(const Program& program) {
    std::vector<unsigned> inputs(program.nodes.size());
    for (std::size_t i = 0; i < program.nodes.size(); ++i) {
        const ProgramNode& node = program.nodes[i];
        inputs[i] = ownInputs(node);
        for (const std::int32_t arg : argsOf(node)) {
            inputs[i] |= inputs[static_cast<std::size_t>(arg)];
        }
    }
    return inputs;
}

std::string programKey(const Program& program) {
    std::string key;
    auto to = std::back_inserter(key);
    for (const ProgramCapture& capture : program.captures) {
        fmt::format_to(to, "c{}:{}{},{},{};", capture.name.size(), capture.name, static_cast<int>(capture.type),
                       capture.rank, capture.differentiable ? 1 : 0);
    }
    for (const ProgramNode& node : program.nodes) {
        fmt::format_to(to, "{},{}", static_cast<int>(node.op), static_cast<int>(node.type));
        for (const std::int32_t arg : argsOf(node)) {
            fmt::format_to(to, ",{}", arg);
        }
        if (node.capture >= 0) {
            fmt::format_to(to, "c{}", node.capture);
        }
        if (node.op == ProgramOp::Constant) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, &node.real, sizeof bits);
            fmt::format_to(to, "={},{:x}", node.integer, node.type == ProgramType::Float ? bits : 0);
        }
        key += ';';
    }
    fmt::format_to(to, "r{}", program.result);
    return key;
}

void checkCaptures(const Program& program, const CaptureBinding& binding) {
    for (std::size_t i = 0; i < program.captures.size(); ++i) {
        const ProgramCapture& capture = program.captures[i];
        const auto fail = [&](const std::string& what) { throw base::BadInput(capture.name + ": " + what); };
        if (i >= binding.tensors.size() || binding.tensors[i].empty()) {
            fail("the program reads this tensor, and it was not given; pass it by this name");
        }
        const TensorView& tensor = binding.tensors[i];
        if (tensor.shape.rank() != capture.rank) {
            fail(fmt::format("has {} dimensions, {}, and the program indexes {}; reshape it", tensor.shape.rank(),
                             tensor.shape.text(), capture.rank));
        }
        if (loadedType(tensor.dtype) != capture.type) {
            fail(fmt::format("is {}, and the program was made for {}; convert it", dtypeName(tensor.dtype),
                             expectedDtypes(capture.type)));
        }
        if (tensor.shape.count() <= 0) {
            fail("is empty; give it at least one element");
        }
    }
}

std::string_view programOpName(ProgramOp op) {
    return kOpNames[static_cast<std::size_t>(op)];
}

std::string_view programOpSymbol(ProgramOp op) {
    struct Symbol {
        ProgramOp op;
        std::string_view text;
    };
    static constexpr std::array<Symbol, 16> kSymbols = {{{ProgramOp::Add, "+"},
                                                         {ProgramOp::Sub, "-"},
                                                         {ProgramOp::Mul, "*"},
                                                         {ProgramOp::Div, "/"},
                                                         {ProgramOp::FloorDiv, "//"},
                                                         {ProgramOp::Mod, "%"},
                                                         {ProgramOp::Pow, "**"},
                                                         {ProgramOp::And, "&"},
                                                         {ProgramOp::Or, "|"},
                                                         {ProgramOp::Xor, "^"},
                                                         {ProgramOp::ShiftLeft, "<<"},
                                                         {ProgramOp::ShiftRight, ">>"},
                                                         {ProgramOp::Lt, "<"},
                                                         {ProgramOp::Le, "<="},
                                                         {ProgramOp::Eq, "=="},
                                                         {ProgramOp::Ne, "!="}}};
    const auto* const found =
        std::find_if(kSymbols.begin(), kSymbols.end(), [op](const Symbol& symbol) { return symbol.op == op; });
    return found == kSymbols.end() ? std::string_view() : found->text;
}

std::string_view programTypeName(ProgramType type) {
    static constexpr std::array<std::string_view, 4> kNames = {"bool", "int32", "int64", "float"};
    return kNames[static_cast<std::size_t>(type)];
}

} // namespace vitrine::kernels
