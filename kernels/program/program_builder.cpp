// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/program_builder.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/program/builder_state.h"
#include "kernels/program/program_fold.h"

namespace vitrine::kernels {

namespace {

using Value = ProgramBuilder::Value;

} // namespace

ProgramBuilder::ProgramBuilder() : state_(std::make_unique<State>()) {}
ProgramBuilder::~ProgramBuilder() = default;
ProgramBuilder::ProgramBuilder(ProgramBuilder&&) noexcept = default;
ProgramBuilder& ProgramBuilder::operator=(ProgramBuilder&&) noexcept = default;

std::int32_t ProgramBuilder::addSource(std::string text) {
    std::vector<std::string>& sources = state_->program.sources;
    const auto found = std::find(sources.begin(), sources.end(), text);
    const auto index = static_cast<std::int32_t>(found - sources.begin());
    if (found == sources.end()) {
        sources.push_back(std::move(text));
    }
    return index;
}

void ProgramBuilder::setSpan(ProgramSpan span) {
    state_->span = span;
}

Value ProgramBuilder::input(ProgramOp op) {
    const bool real = op == ProgramOp::Score || op == ProgramOp::Upstream;
    if (!real && (op < ProgramOp::Batch || op > ProgramOp::Key)) {
        throw base::Internal("program: " + std::string(programOpName(op)) + " is no input");
    }
    return state_->make(op, real ? ProgramType::Float : ProgramType::Int32, -1);
}

Value ProgramBuilder::constant(bool value) {
    return state_->constant(boolConstant(value), true);
}

Value ProgramBuilder::constant(std::int64_t value, bool weak) {
    return state_->constant(intConstant(ProgramType::Int64, value), weak);
}

Value ProgramBuilder::constant(double value, bool weak) {
    return state_->constant(floatConstant(value), weak);
}

std::int32_t ProgramBuilder::capture(const ProgramCapture& capture) {
    std::vector<ProgramCapture>& captures = state_->program.captures;
    const auto found = std::find_if(captures.begin(), captures.end(),
                                    [&](const ProgramCapture& item) { return item.name == capture.name; });
    const auto index = static_cast<std::int32_t>(found - captures.begin());
    if (found != captures.end()) {
        if (found->type != capture.type || found->rank != capture.rank) {
            throw base::BadInput(capture.name + ": two captured tensors of this name differ in type or dimensions; "
                                                "rename one");
        }
        found->differentiable = found->differentiable || capture.differentiable;
        return index;
    }
    if (capture.rank < 0 || capture.rank > kMaxCaptureRank) {
        throw base::BadInput(capture.name + ": a captured tensor has 0 to 3 dimensions; reshape it");
    }
    if (captures.size() >= static_cast<std::size_t>(kMaxProgramCaptures)) {
        throw base::BadInput(capture.name + ": a program captures at most 32 tensors; put several into one");
    }
    captures.push_back(capture);
    return index;
}

Value ProgramBuilder::scalar(std::int32_t capture) {
    return load(capture, {});
}

Value ProgramBuilder::load(std::int32_t capture, std::span<const Value> indices) {
    const ProgramCapture& tensor = state_->program.captures.at(static_cast<std::size_t>(capture));
    if (indices.size() != static_cast<std::size_t>(tensor.rank)) {
        throw base::BadInput(tensor.name + ": has " + std::to_string(tensor.rank) + " dimensions and is indexed with " +
                             std::to_string(indices.size()) + "; give one index for each");
    }
    ProgramNode node;
    node.op = tensor.rank == 0 ? ProgramOp::Scalar : ProgramOp::Load;
    node.type = tensor.type;
    node.capture = capture;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const ProgramType type = state_->at(indices[i]).type;
        if (type != ProgramType::Int32 && type != ProgramType::Int64) {
            throw base::BadInput(tensor.name + ": an index must be an integer, not " +
                                 std::string(programTypeName(type)) + "; convert it with .int()");
        }
        const bool narrow = state_->isConstant(indices[i]) && fitsInt32(state_->at(indices[i]).integer);
        node.args[i] = narrow ? state_->cast(ProgramType::Int32, indices[i]) : indices[i];
    }
    return state_->make(node);
}

Value ProgramBuilder::binary(ProgramOp op, Value left, Value right) {
    State& state = *state_;
    if (!isBinary(op)) {
        throw base::Internal("program: " + std::string(programOpName(op)) + " has not two operands");
    }
    ProgramType type = state.common(left, right);
    if ((isBitwise(op) || isShift(op)) && type == ProgramType::Float) {
        throw base::BadInput(std::string(isShift(op) ? "a shift" : "& | ^") +
                             " needs booleans or integers, not a float; put comparisons in parentheses");
    }
    if (state.isConstant(left) && state.isConstant(right) && state.isWeak(left) && state.isWeak(right)) {
        return state.constant(foldPython(op, state.constantOf(left), state.constantOf(right)), true);
    }
    if (givesFloat(op)) {
        type = ProgramType::Float;
    }
    if (isShift(op) && type == ProgramType::Bool) {
        type = ProgramType::Int64;
    }
    left = state.cast(type, left);
    right = state.cast(type, right);
    return type == ProgramType::Bool ? state.logic(op, left, right) : state.simplified(op, left, right);
}

Value ProgramBuilder::unary(ProgramOp op, Value value) {
    State& state = *state_;
    if (op < ProgramOp::Neg || (op > ProgramOp::Trunc && op != ProgramOp::Not) || givesFloat(op)) {
        throw base::Internal("program: " + std::string(programOpName(op)) + " has not one operand");
    }
    const ProgramType type = state.at(value).type;
    const bool weak = state.isWeak(value);
    if (op == ProgramOp::Not) {
        if (type == ProgramType::Float) {
            throw base::BadInput("~ needs a boolean or an integer, not a float; compare it first");
        }
        if (type == ProgramType::Bool) {
            return state.negated(value);
        }
    } else if (op == ProgramOp::Neg || op == ProgramOp::Abs || op == ProgramOp::Sign || isRounding(op)) {
        if (type == ProgramType::Bool && op == ProgramOp::Neg && !weak) {
            throw base::BadInput("- of a boolean is not defined; use ~ or convert it with .int()");
        }
        if (type == ProgramType::Bool) {
            value = weak ? state.constant(foldCast(ProgramType::Int64, state.constantOf(value)), true)
                         : state.cast(ProgramType::Int64, value);
        }
        if (isRounding(op) && type != ProgramType::Float) {
            return value;
        }
    } else if (type != ProgramType::Float) {
        value = weak ? state.constant(foldCast(ProgramType::Float, state.constantOf(value)), true)
                     : state.cast(ProgramType::Float, value);
    }
    if (state.isConstant(value)) {
        return state.constant(foldUnary(op, state.constantOf(value)), weak);
    }
    const ProgramNode& node = state.at(value);
    if ((op == ProgramOp::Neg || op == ProgramOp::Not) && node.op == op) {
        return node.args[0];
    }
    if (op == ProgramOp::Abs && node.op == ProgramOp::Abs) {
        return value;
    }
    return state.make(op, node.type, value);
}

Value ProgramBuilder::select(Value condition, Value ifTrue, Value ifFalse) {
    State& state = *state_;
    condition = state.cast(ProgramType::Bool, condition);
    const ProgramType type = state.common(ifTrue, ifFalse);
    ifTrue = state.cast(type, ifTrue);
    ifFalse = state.cast(type, ifFalse);
    if (state.isConstant(condition)) {
        return state.at(condition).integer != 0 ? ifTrue : ifFalse;
    }
    if (ifTrue == ifFalse) {
        return ifTrue;
    }
    if (type == ProgramType::Bool) {
        // As logic: interval analysis and closed forms read And and Or.
        if (state.isConstant(ifTrue)) {
            return state.at(ifTrue).integer != 0
                       ? state.simplifiedLogic(ProgramOp::Or, condition, ifFalse)
                       : state.simplifiedLogic(ProgramOp::And, state.negated(condition), ifFalse);
        }
        if (state.isConstant(ifFalse)) {
            return state.at(ifFalse).integer != 0
                       ? state.simplifiedLogic(ProgramOp::Or, state.negated(condition), ifTrue)
                       : state.simplifiedLogic(ProgramOp::And, condition, ifTrue);
        }
    }
    if (state.at(condition).op == ProgramOp::Not) {
        condition = state.at(condition).args[0];
        std::swap(ifTrue, ifFalse);
    }
    return state.make(ProgramOp::Select, type, condition, ifTrue, ifFalse);
}

Value ProgramBuilder::cast(ProgramType type, Value value) {
    return state_->cast(type, value);
}

ProgramType ProgramBuilder::type(Value value) const {
    return state_->at(value).type;
}

bool ProgramBuilder::isWeak(Value value) const {
    return state_->at(value).op == ProgramOp::Constant && state_->isWeak(value);
}

std::optional<bool> ProgramBuilder::boolean(Value value) const {
    const ProgramNode& node = state_->at(value);
    if (node.op != ProgramOp::Constant || node.type != ProgramType::Bool) {
        return std::nullopt;
    }
    return node.integer != 0;
}

std::optional<std::int64_t> ProgramBuilder::integer(Value value) const {
    const ProgramNode& node = state_->at(value);
    if (node.op != ProgramOp::Constant || (node.type != ProgramType::Int32 && node.type != ProgramType::Int64)) {
        return std::nullopt;
    }
    return node.integer;
}

std::optional<double> ProgramBuilder::real(Value value) const {
    return state_->isConstant(value) ? std::optional(state_->constantOf(value).number()) : std::nullopt;
}

Program ProgramBuilder::finish(Value result) const {
    std::vector<std::int32_t> results;
    return finish(std::span<const Value>(&result, 1), results);
}

Program ProgramBuilder::finish(std::span<const Value> roots, std::vector<std::int32_t>& results) const {
    const Program& from = state_->program;
    std::vector<std::uint8_t> used(from.nodes.size(), 0);
    for (const Value root : roots) {
        static_cast<void>(state_->at(root));
        used[static_cast<std::size_t>(root)] = 1;
    }
    for (std::size_t i = from.nodes.size(); i-- > 0;) {
        if (used[i] != 0) {
            for (const std::int32_t arg : argsOf(from.nodes[i])) {
                used[static_cast<std::size_t>(arg)] = 1;
            }
        }
    }
    Program out;
    out.sources = from.sources;
    std::vector<std::int32_t> place(from.nodes.size(), -1), capturePlace(from.captures.size(), -1);
    for (std::size_t i = 0; i < from.nodes.size(); ++i) {
        if (used[i] == 0) {
            continue;
        }
        ProgramNode node = from.nodes[i];
        for (std::int32_t& arg : node.args) {
            arg = arg < 0 ? -1 : place[static_cast<std::size_t>(arg)];
        }
        if (node.capture >= 0) {
            std::int32_t& to = capturePlace[static_cast<std::size_t>(node.capture)];
            if (to < 0) {
                to = static_cast<std::int32_t>(out.captures.size());
                out.captures.push_back(from.captures[static_cast<std::size_t>(node.capture)]);
            }
            node.capture = to;
        }
        place[i] = static_cast<std::int32_t>(out.nodes.size());
        out.nodes.push_back(node);
    }
    results.clear();
    for (const Value root : roots) {
        results.push_back(place[static_cast<std::size_t>(root)]);
    }
    out.result = results.empty() ? -1 : results.front();
    return out;
}

} // namespace vitrine::kernels
