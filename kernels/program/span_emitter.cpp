// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Masks over boxes of inputs as CUDA C++: calls of device/program/span.cuh.

#include <fmt/format.h>
#include <limits>

#include "base/error.h"
#include "kernels/program/emitter.h"
#include "kernels/program/emitter_names.h"

namespace vitrine::kernels {

namespace {

std::string_view storageName(DType dtype) {
    switch (dtype) {
    case DType::I32:
        return "int";
    case DType::I64:
        return "long long";
    case DType::I16:
        return "short";
    case DType::I8:
        return "signed char";
    case DType::U8:
        return "unsigned char";
    case DType::Bool:
        return "bool";
    default:
        throw base::Internal("emitter: a captured tensor of integers has no such dtype");
    }
}

/// Functions of spans alone.
std::string_view plainName(ProgramOp op) {
    switch (op) {
    case ProgramOp::Min:
    case ProgramOp::Max:
        return emittedFunction(op);
    case ProgramOp::Sign:
        return "sign";
    case ProgramOp::Lt:
        return "less";
    case ProgramOp::Le:
        return "lessOrEqual";
    case ProgramOp::Eq:
        return "equal";
    case ProgramOp::Ne:
        return "unequal";
    case ProgramOp::Select:
        return "select";
    default:
        return "";
    }
}

/// Functions that ask for the node's type.
std::string_view typedName(ProgramOp op) {
    switch (op) {
    case ProgramOp::Neg:
        return "neg";
    case ProgramOp::Abs:
        return "absolute";
    case ProgramOp::And:
        return "bitAnd";
    case ProgramOp::Or:
        return "bitOr";
    case ProgramOp::Xor:
        return "bitXor";
    case ProgramOp::Not:
        return "bitNot";
    case ProgramOp::Cast:
        return "cast";
    default:
        return emittedFunction(op);
    }
}

std::string nameOf(const Program& program, std::int32_t index) {
    switch (program.at(index).op) {
    case ProgramOp::Batch:
        return "b";
    case ProgramOp::Head:
        return "h";
    case ProgramOp::Query:
        return "q_idx";
    case ProgramOp::Key:
        return "kv_idx";
    default:
        return fmt::format("s{}", index);
    }
}

/// Of a node that is not Float.
std::string spanText(const Program& program, const ProgramNode& node, std::span<const DType> dtypes) {
    std::string unknown = fmt::format("vt::span::whole<{}>()", emittedType(node.type));
    std::string args;
    for (const std::int32_t arg : argsOf(node)) {
        if (program.at(arg).type == ProgramType::Float) {
            return unknown;
        }
        args += (args.empty() ? "" : ", ") + nameOf(program, arg);
    }
    const auto captured = [&] { return storageName(dtypes[static_cast<std::size_t>(node.capture)]); };
    if (node.op == ProgramOp::Constant) {
        return node.integer == std::numeric_limits<std::int64_t>::min()
                   ? "vt::span::exact(-9223372036854775807LL - 1)"
                   : fmt::format("vt::span::exact({}LL)", node.integer);
    }
    if (node.op == ProgramOp::Scalar) {
        return fmt::format("vt::span::scalar<{}>(c.items[{}])", captured(), node.capture);
    }
    if (node.op == ProgramOp::Load) {
        return fmt::format("vt::span::load<{}, {}>(c.items[{}], {})", captured(), emittedType(node.type), node.capture,
                           args);
    }
    if (const std::string_view plain = plainName(node.op); !plain.empty()) {
        return fmt::format("vt::span::{}({})", plain, args);
    }
    if (const std::string_view typed = typedName(node.op); !typed.empty()) {
        return fmt::format("vt::span::{}<{}>({})", typed, emittedType(node.type), args);
    }
    return unknown;
}

} // namespace

std::string emitMaskSpan(const Program& mask, std::span<const DType> dtypes, std::string_view name) {
    std::string body;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(mask.nodes.size()); ++i) {
        const ProgramNode& node = mask.at(i);
        const bool input = nameOf(mask, i).front() != 's';
        if (node.type != ProgramType::Float && !input) {
            body += fmt::format("    const vt::span::Span s{} = {};\n", i, spanText(mask, node, dtypes));
        }
    }
    return fmt::format("__device__ __forceinline__ vt::span::Span {}(const vt::span::Span& b, const vt::span::Span& h, "
                       "const vt::span::Span& q_idx, const vt::span::Span& kv_idx, const vt::program::Captures& c) "
                       "{{\n{}    return {};\n}}\n",
                       name, body, nameOf(mask, mask.result));
}

} // namespace vitrine::kernels
