// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/emitter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

#include "base/error.h"
#include "base/integers.h"
#include "kernels/program/emitter_names.h"
#include "kernels/program/interval.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kLongest = std::int64_t{1} << 30; ///< positions lie below

std::string floatText(double value) {
    const auto narrow = static_cast<float>(value);
    if (!std::isfinite(narrow)) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &narrow, sizeof bits);
        return fmt::format("__uint_as_float(0x{:08x}u)", bits);
    }
    std::string text = fmt::format("{:.9g}", narrow);
    if (text.find_first_of(".e") == std::string::npos) {
        text += ".0";
    }
    return narrow < 0 ? "(" + text.append("f)") : text.append("f");
}

std::string constantText(const ProgramNode& node) {
    switch (node.type) {
    case ProgramType::Bool:
        return node.integer != 0 ? "true" : "false";
    case ProgramType::Float:
        return floatText(node.real);
    case ProgramType::Int32:
        return node.integer == std::numeric_limits<std::int32_t>::min() ? "(-2147483647 - 1)"
               : node.integer < 0                                       ? fmt::format("({})", node.integer)
                                                                        : fmt::format("{}", node.integer);
    case ProgramType::Int64:
        return node.integer == std::numeric_limits<std::int64_t>::min() ? "(-9223372036854775807LL - 1)"
                                                                        : fmt::format("({}LL)", node.integer);
    }
    return "";
}

/// The C++ type of a captured element, or the function that reads it.
std::string elementText(DType dtype, std::string_view capture, std::string_view offset) {
    const auto read = [&](std::string_view type) {
        return fmt::format("vt::program::element<{}>({}, {})", type, capture, offset);
    };
    switch (dtype) {
    case DType::F32:
        return read("float");
    case DType::F64:
        return fmt::format("static_cast<float>({})", read("double"));
    case DType::BF16:
        return fmt::format("vt::program::bf16Element({}, {})", capture, offset);
    case DType::F16:
        return fmt::format("vt::program::f16Element({}, {})", capture, offset);
    case DType::I32:
        return read("int");
    case DType::I64:
        return read("long long");
    case DType::I16:
        return fmt::format("static_cast<int>({})", read("short"));
    case DType::I8:
        return fmt::format("static_cast<int>({})", read("signed char"));
    case DType::U8:
        return fmt::format("static_cast<int>({})", read("unsigned char"));
    case DType::Bool:
        return fmt::format("({} != 0)", read("unsigned char"));
    default:
        throw base::BadInput(fmt::format("programs cannot read tensors of {}; convert it", dtypeName(dtype)));
    }
}

std::string_view functionName(ProgramOp op) {
    switch (op) {
    case ProgramOp::Exp:
        return "__expf";
    case ProgramOp::Exp2:
        return "exp2f";
    case ProgramOp::Expm1:
        return "expm1f";
    case ProgramOp::Log:
        return "logf";
    case ProgramOp::Log2:
        return "log2f";
    case ProgramOp::Log1p:
        return "log1pf";
    case ProgramOp::Sqrt:
        return "sqrtf";
    case ProgramOp::Rsqrt:
        return "rsqrtf";
    case ProgramOp::Sigmoid:
        return "vt::program::sigmoid";
    case ProgramOp::Sin:
        return "sinf";
    case ProgramOp::Cos:
        return "cosf";
    case ProgramOp::Erf:
        return "erff";
    case ProgramOp::Floor:
        return "floorf";
    case ProgramOp::Ceil:
        return "ceilf";
    case ProgramOp::Round:
        return "rintf";
    case ProgramOp::Trunc:
        return "truncf";
    case ProgramOp::Abs:
        return "vt::program::absolute";
    case ProgramOp::Sign:
        return "vt::program::sign";
    default:
        return "";
    }
}

/// Operators that C++ has, and spells as Python does, for every type that reaches them.
std::string_view plainOperator(ProgramOp op, ProgramType type) {
    switch (op) {
    case ProgramOp::Add:
    case ProgramOp::Sub:
    case ProgramOp::Mul:
        return type == ProgramType::Float ? programOpSymbol(op) : "";
    case ProgramOp::Div:
    case ProgramOp::Lt:
    case ProgramOp::Le:
    case ProgramOp::Eq:
    case ProgramOp::Ne:
    case ProgramOp::And:
    case ProgramOp::Or:
    case ProgramOp::Xor:
        return programOpSymbol(op);
    default:
        return "";
    }
}

/// Operations that compilers would contract.
std::string_view roundedFunction(const ProgramNode& node) {
    if (node.type != ProgramType::Float) {
        return "";
    }
    return node.op == ProgramOp::Add   ? "__fadd_rn"
           : node.op == ProgramOp::Sub ? "__fsub_rn"
           : node.op == ProgramOp::Mul ? "__fmul_rn"
           : node.op == ProgramOp::Div ? "__fdiv_rn"
                                       : "";
}

std::string_view helperName(ProgramOp op) {
    const std::string_view shared = op == ProgramOp::Pow ? "power" : emittedFunction(op);
    if (shared.empty()) {
        throw base::Internal("emitter: no form of " + std::string(programOpName(op)));
    }
    return shared;
}

class Emitter {
public:
    Emitter(const Program& program, std::span<const DType> dtypes, const EmitOptions& options)
        : program_(program), dtypes_(dtypes), options_(options), ranges_(program.nodes.size()) {
        if (dtypes.size() != program.captures.size()) {
            throw base::Internal("emitter: not one dtype for each capture");
        }
        for (std::size_t i = 0; i < program.nodes.size(); ++i) {
            ranges_[i] = rangeAt(program.nodes[i]);
        }
    }

    /// Declarations of what the roots need.
    std::string body(std::span<const std::int32_t> roots) {
        std::vector<std::uint8_t> used(program_.nodes.size(), 0);
        for (const std::int32_t root : roots) {
            used[base::toIndex(root)] = 1;
        }
        for (std::size_t i = program_.nodes.size(); i-- > 0;) {
            for (const std::int32_t arg : argsOf(program_.nodes[i])) {
                used[base::toIndex(arg)] |= used[i];
            }
        }
        std::string out;
        for (std::int32_t i = 0; base::toIndex(i) < used.size(); ++i) {
            const ProgramNode& node = program_.at(i);
            if (used[base::toIndex(i)] != 0 && !isLeaf(node)) {
                out += fmt::format("    const {} t{} = {};\n", emittedType(node.type), i, expression(node));
            }
        }
        return out;
    }

    /// A node where it is read.
    std::string name(std::int32_t index) const {
        const ProgramNode& node = program_.at(index);
        switch (node.op) {
        case ProgramOp::Score:
            return "score";
        case ProgramOp::Upstream:
            return "upstream";
        case ProgramOp::Batch:
            return "b";
        case ProgramOp::Head:
            return "h";
        case ProgramOp::Query:
            return "q_idx";
        case ProgramOp::Key:
            return "kv_idx";
        case ProgramOp::Constant:
            return constantText(node);
        default:
            return fmt::format("t{}", index);
        }
    }

    /// Element of a contiguous tensor of the capture's extents.
    std::string offsetText(std::int32_t capture, std::span<const std::int32_t> indices, bool strided) const {
        std::string out = "0LL";
        for (std::size_t dim = 0; dim < indices.size(); ++dim) {
            const std::string place = fmt::format(
                "static_cast<long long>(vt::program::place<{}>({}, c.items[{}].extents[{}]))",
                ranges_[base::toIndex(indices[dim])].low >= 0 ? "true" : "false", name(indices[dim]), capture, dim);
            if (dim == 0) {
                out = strided && indices.size() > 1 ? fmt::format("{} * c.items[{}].rowStride", place, capture) : place;
            } else if (dim == 1 && strided) {
                out = indices.size() == 3 ? fmt::format("{} + {} * c.items[{}].extents[2]", out, place, capture)
                                          : fmt::format("{} + {}", out, place);
            } else if (strided) {
                out = fmt::format("{} + {}", out, place);
            } else {
                out = fmt::format("({}) * c.items[{}].extents[{}] + {}", out, capture, dim, place);
            }
        }
        return out;
    }

private:
    static bool isLeaf(const ProgramNode& node) { return node.args[0] < 0 && node.op != ProgramOp::Scalar; }

    /// Bounds over all positions, whatever is captured.
    ValueRange rangeAt(const ProgramNode& node) const {
        const auto arg = [&](std::size_t i) { return ranges_[base::toIndex(node.args[i])]; };
        switch (node.op) {
        case ProgramOp::Batch:
        case ProgramOp::Head:
        case ProgramOp::Query:
        case ProgramOp::Key:
            return integerRange(0, kLongest);
        case ProgramOp::Constant:
            return node.type == ProgramType::Float ? wholeRange(node.type) : exactRange(node.integer);
        case ProgramOp::Select:
            return hull(node.type, arg(1), arg(2));
        case ProgramOp::Cast:
            return castRange(node.type, program_.at(node.args[0]).type, arg(0));
        default:
            return node.args[0] < 0 || node.op == ProgramOp::Load
                       ? wholeRange(node.type)
                       : rangeOf(node.op, node.type, program_.at(node.args[0]).type, arg(0),
                                 arg(node.args[1] < 0 ? 0 : 1));
        }
    }

    std::string expression(const ProgramNode& node) const {
        switch (node.op) {
        case ProgramOp::Scalar: {
            // The launcher gives a number that it knows without memory: then the address is null.
            const std::string item = fmt::format("c.items[{}]", node.capture);
            return fmt::format("{0}.data != nullptr ? {1} : static_cast<{2}>({0}.{3})", item,
                               elementText(dtypes_[base::toIndex(node.capture)], item, "0LL"), emittedType(node.type),
                               node.type == ProgramType::Float ? "real" : "integer");
        }
        case ProgramOp::Load:
            return elementText(dtypes_[base::toIndex(node.capture)], fmt::format("c.items[{}]", node.capture),
                               offsetText(node.capture, argsOf(node), true));
        case ProgramOp::Select:
            return fmt::format("{} ? {} : {}", name(node.args[0]), name(node.args[1]), name(node.args[2]));
        case ProgramOp::Cast:
            return node.type == ProgramType::Bool
                       ? fmt::format("{} != 0", name(node.args[0]))
                       : fmt::format("static_cast<{}>({})", emittedType(node.type), name(node.args[0]));
        case ProgramOp::Not:
            return fmt::format("{}{}", node.type == ProgramType::Bool ? "!" : "~", name(node.args[0]));
        case ProgramOp::Neg:
            return node.type == ProgramType::Float ? fmt::format("-{}", name(node.args[0]))
                                                   : fmt::format("vt::program::neg({})", name(node.args[0]));
        case ProgramOp::Tanh:
            return fmt::format("{}({})", options_.fastTanh ? "vt::program::fastTanh" : "vt::program::tanhByExp",
                               name(node.args[0]));
        default:
            return operation(node);
        }
    }

    std::string operation(const ProgramNode& node) const {
        const std::string a = name(node.args[0]);
        if (node.args[1] < 0) {
            return fmt::format("{}({})", functionName(node.op), a);
        }
        const std::string b = name(node.args[1]);
        if (const std::string fast = unsignedDivision(node, a, b); !fast.empty()) {
            return fast;
        }
        if (const std::string_view rounded = roundedFunction(node); options_.exact && !rounded.empty()) {
            return fmt::format("{}({}, {})", rounded, a, b);
        }
        if (const ProgramNode& divisor = program_.at(node.args[1]);
            options_.reciprocals && node.op == ProgramOp::Div && divisor.op == ProgramOp::Constant &&
            std::isnormal(static_cast<float>(1 / divisor.real))) {
            ProgramNode reciprocal = divisor;
            reciprocal.real = 1 / divisor.real;
            return fmt::format("{} * {}", a, constantText(reciprocal));
        }
        if (const std::string_view symbol = plainOperator(node.op, node.type); !symbol.empty()) {
            return fmt::format("{} {} {}", a, symbol, b);
        }
        if (node.op == ProgramOp::Pow && node.type == ProgramType::Float) {
            return program_.at(node.args[1]).op == ProgramOp::Constant && program_.at(node.args[1]).real == 2
                       ? fmt::format("{} * {}", a, a)
                       : fmt::format("powf({}, {})", a, b);
        }
        if (node.op == ProgramOp::Atan2) {
            return fmt::format("atan2f({}, {})", a, b);
        }
        return node.type == ProgramType::Float
                   ? fmt::format("vt::program::{}({}, {})", helperName(node.op), a, b)
                   : fmt::format("vt::program::{}<{}>({}, {})", helperName(node.op), emittedType(node.type), a, b);
    }

    /// Division and remainder by a positive constant: of what is never negative as unsigned numbers, by powers of two
    /// as a shift and a mask (right for negative numbers as well).
    std::string unsignedDivision(const ProgramNode& node, const std::string& a, const std::string& b) const {
        const ValueRange& divisor = ranges_[base::toIndex(node.args[1])];
        const bool divides = node.op == ProgramOp::FloorDiv;
        if ((!divides && node.op != ProgramOp::Mod) || node.type == ProgramType::Float || !divisor.single() ||
            divisor.low <= 0) {
            return {};
        }
        const auto value = static_cast<std::uint64_t>(divisor.low);
        if ((value & (value - 1)) == 0) {
            return divides ? fmt::format("{} >> {}", a, __builtin_ctzll(value))
                           : fmt::format("{} & {}", a, divisor.low - 1);
        }
        if (ranges_[base::toIndex(node.args[0])].low < 0) {
            return {};
        }
        const std::string_view type = emittedType(node.type);
        return fmt::format("static_cast<{0}>(static_cast<unsigned {0}>({1}) {2} static_cast<unsigned {0}>({3}))", type,
                           a, divides ? "/" : "%", b);
    }

    const Program& program_;
    std::span<const DType> dtypes_;
    EmitOptions options_;
    std::vector<ValueRange> ranges_;
};

constexpr std::string_view kCaptures = "const vt::program::Captures& c";

} // namespace

bool isExactOnDevice(const Program& program) {
    return std::all_of(program.nodes.begin(), program.nodes.end(), [](const ProgramNode& node) {
        switch (node.op) {
        case ProgramOp::Exp:
        case ProgramOp::Exp2:
        case ProgramOp::Expm1:
        case ProgramOp::Log:
        case ProgramOp::Log2:
        case ProgramOp::Log1p:
        case ProgramOp::Rsqrt:
        case ProgramOp::Tanh:
        case ProgramOp::Sigmoid:
        case ProgramOp::Sin:
        case ProgramOp::Cos:
        case ProgramOp::Erf:
        case ProgramOp::Atan2:
            return false;
        case ProgramOp::Pow:
        case ProgramOp::FloorDiv:
        case ProgramOp::Mod:
            return node.type != ProgramType::Float;
        default:
            return true;
        }
    });
}

std::string emitProgram(const Program& program, std::span<const DType> dtypes, std::string_view name,
                        const EmitOptions& options) {
    Emitter emitter(program, dtypes, options);
    const std::string body = emitter.body({&program.result, 1});
    return fmt::format(
        "__device__ __forceinline__ {} {}({}int b, int h, int q_idx, int kv_idx, {}) {{\n{}    return {};\n}}\n",
        program.isMask() ? "bool" : "float", name, program.isMask() ? "" : "float score, ", kCaptures, body,
        emitter.name(program.result));
}

std::string emitGradient(const ScoreGradient& gradient, std::span<const DType> dtypes, std::string_view name,
                         std::string_view captureName, const EmitOptions& options) {
    Emitter emitter(gradient.program, dtypes, options);
    const std::int32_t result = gradient.program.result;
    std::string out =
        fmt::format("__device__ __forceinline__ float {}(float score, float upstream, int b, int h, int q_idx, "
                    "int kv_idx, {}) {{\n{}    return {};\n}}\n",
                    name, kCaptures, emitter.body({&result, 1}), emitter.name(result));
    std::vector<std::int32_t> roots;
    std::string calls;
    for (std::size_t i = 0; i < gradient.captures.size(); ++i) {
        const ScoreGradient::CaptureGradient& item = gradient.captures[i];
        roots.push_back(item.value);
        roots.insert(roots.end(), item.indices.begin(), item.indices.end());
        calls += fmt::format("    sink({}, {}, {});\n", i, emitter.offsetText(item.capture, item.indices, false),
                             emitter.name(item.value));
    }
    return out + fmt::format("template <class Sink>\n__device__ __forceinline__ void {}(float score, float upstream, "
                             "int b, int h, int q_idx, int kv_idx, {}, Sink&& sink) {{\n{}{}}}\n",
                             captureName, kCaptures, emitter.body(roots), calls);
}

std::string emitIntervalRows(const IntervalRows& rows, std::span<const DType> dtypes, std::string_view name) {
    std::string out = fmt::format(
        "__device__ __forceinline__ void {}(int b, int h, int q_idx, {}, int& low, int& high) {{\n", name, kCaptures);
    const auto bound = [&](const Program& program, std::string_view to, int least) {
        Emitter emitter(program, dtypes, {});
        out +=
            fmt::format("    {{\n{0}    const long long bound = {1};\n    {2} = static_cast<int>(bound < {3} ? {3} : "
                        "bound > 2147483647 ? 2147483647 : bound);\n    }}\n",
                        emitter.body({&program.result, 1}), emitter.name(program.result), to, least);
    };
    bound(rows.low, "low", 0);
    bound(rows.high, "high", -1);
    return out + "}\n";
}

} // namespace vitrine::kernels
