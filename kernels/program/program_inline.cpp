// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Programs made from programs, and the ones that the models use.

#include <algorithm>

#include "base/error.h"
#include "kernels/program/program_copy.h"

namespace vitrine::kernels {

namespace {

using Value = ProgramBuilder::Value;

Value copyConstant(ProgramBuilder& builder, const ProgramNode& node) {
    switch (node.type) {
    case ProgramType::Bool:
        return builder.constant(node.integer != 0);
    case ProgramType::Float:
        return builder.constant(node.real, false);
    default:
        return builder.cast(node.type, builder.constant(node.integer, false));
    }
}

Value copyNode(ProgramBuilder& builder, const Program& program, const ProgramNode& node, std::span<const Value> args) {
    switch (node.op) {
    case ProgramOp::Score:
    case ProgramOp::Batch:
    case ProgramOp::Head:
    case ProgramOp::Query:
    case ProgramOp::Key:
    case ProgramOp::Upstream:
        return builder.input(node.op);
    case ProgramOp::Constant:
        return copyConstant(builder, node);
    case ProgramOp::Scalar:
    case ProgramOp::Load:
        return builder.load(builder.capture(program.captures[static_cast<std::size_t>(node.capture)]), args);
    case ProgramOp::Select:
        return builder.select(args[0], args[1], args[2]);
    case ProgramOp::Cast:
        return builder.cast(node.type, args[0]);
    default:
        return args.size() == 2 ? builder.binary(node.op, args[0], args[1]) : builder.unary(node.op, args[0]);
    }
}

template <class Combine> Program combined(const Program& a, const Program& b, const Combine& combine) {
    if (!a.isMask() || !b.isMask()) {
        throw base::BadInput("a score program stands where a mask is needed; give functions of (b, h, q_idx, kv_idx)");
    }
    ProgramBuilder builder;
    const Value left = builder.inlined(a);
    return builder.finish(combine(builder, left, builder.inlined(b)));
}

} // namespace

std::vector<Value> copyNodes(ProgramBuilder& builder, const Program& program, std::span<const std::int32_t> roots,
                             std::span<const ProgramBuilder::Substitution> inputs) {
    std::vector<std::int32_t> sources;
    for (const std::string& text : program.sources) {
        sources.push_back(builder.addSource(text));
    }
    std::vector<std::uint8_t> used(program.nodes.size(), 0);
    for (const std::int32_t root : roots) {
        used.at(static_cast<std::size_t>(root)) = 1;
    }
    for (std::size_t i = program.nodes.size(); i-- > 0;) {
        for (const std::int32_t arg : argsOf(program.nodes[i])) {
            used[static_cast<std::size_t>(arg)] |= used[i];
        }
    }
    std::vector<Value> values;
    for (const ProgramNode& node : program.nodes) {
        if (used[values.size()] == 0) {
            values.push_back(-1);
            continue;
        }
        const auto given = std::find_if(inputs.begin(), inputs.end(),
                                        [&](const ProgramBuilder::Substitution& item) { return item.op == node.op; });
        if (given != inputs.end()) {
            values.push_back(given->value);
            continue;
        }
        ProgramSpan span;
        if (node.span.source >= 0) {
            span = {sources.at(static_cast<std::size_t>(node.span.source)), node.span.begin, node.span.end};
        }
        builder.setSpan(span);
        std::vector<Value> args;
        for (const std::int32_t arg : argsOf(node)) {
            args.push_back(values[static_cast<std::size_t>(arg)]);
        }
        values.push_back(copyNode(builder, program, node, args));
    }
    builder.setSpan({});
    return values;
}

Program withCapturesOf(Program program, const Program& origin) {
    std::vector<std::int32_t> place;
    for (const ProgramCapture& capture : program.captures) {
        const auto found = std::find_if(origin.captures.begin(), origin.captures.end(),
                                        [&](const ProgramCapture& item) { return item.name == capture.name; });
        place.push_back(static_cast<std::int32_t>(found - origin.captures.begin()));
    }
    for (ProgramNode& node : program.nodes) {
        if (node.capture >= 0) {
            node.capture = place[static_cast<std::size_t>(node.capture)];
        }
    }
    program.captures = origin.captures;
    return program;
}

Value ProgramBuilder::inlined(const Program& program, std::span<const Substitution> inputs) {
    return copyNodes(*this, program, {&program.result, 1}, inputs)[static_cast<std::size_t>(program.result)];
}

Program causalMask() {
    ProgramBuilder builder;
    return builder.finish(
        builder.binary(ProgramOp::Le, builder.input(ProgramOp::Key), builder.input(ProgramOp::Query)));
}

Program slidingWindowMask(std::int64_t window) {
    if (window <= 0) {
        return causalMask();
    }
    ProgramBuilder builder;
    const Value query = builder.input(ProgramOp::Query);
    const Value key = builder.input(ProgramOp::Key);
    const Value near =
        builder.binary(ProgramOp::Lt, builder.binary(ProgramOp::Sub, query, key), builder.constant(window));
    return builder.finish(builder.binary(ProgramOp::And, builder.binary(ProgramOp::Le, key, query), near));
}

Program softCapScore(double cap) {
    ProgramBuilder builder;
    const Value limit = builder.constant(cap);
    const Value share = builder.binary(ProgramOp::Div, builder.input(ProgramOp::Score), limit);
    return builder.finish(builder.binary(ProgramOp::Mul, builder.unary(ProgramOp::Tanh, share), limit));
}

Program andMasks(const Program& a, const Program& b) {
    return combined(a, b, [](ProgramBuilder& builder, Value left, Value right) {
        return builder.binary(ProgramOp::And, left, right);
    });
}

Program orMasks(const Program& a, const Program& b) {
    return combined(a, b, [](ProgramBuilder& builder, Value left, Value right) {
        return builder.binary(ProgramOp::Or, left, right);
    });
}

Program maskDifference(const Program& a, const Program& b) {
    return combined(a, b, [](ProgramBuilder& builder, Value left, Value right) {
        return builder.binary(ProgramOp::And, left, builder.unary(ProgramOp::Not, right));
    });
}

} // namespace vitrine::kernels
