// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/builder_state.h"

#include <algorithm>

namespace vitrine::kernels {

namespace {

using Value = ProgramBuilder::Value;

bool commutes(ProgramOp op) {
    switch (op) {
    case ProgramOp::Add:
    case ProgramOp::Mul:
    case ProgramOp::Min:
    case ProgramOp::Max:
    case ProgramOp::Eq:
    case ProgramOp::Ne:
    case ProgramOp::And:
    case ProgramOp::Or:
    case ProgramOp::Xor:
        return true;
    default:
        return false;
    }
}

} // namespace

Value ProgramBuilder::State::make(ProgramNode node, bool isWeak) {
    ProgramNodeKey key{node, isWeak};
    if (commutes(node.op)) {
        std::swap(key.node.args[0], key.node.args[1]);
        if (const auto found = known.find(key); found != known.end()) {
            return found->second;
        }
        std::swap(key.node.args[0], key.node.args[1]);
    }
    const auto [at, added] = known.try_emplace(key, static_cast<Value>(program.nodes.size()));
    if (added) {
        if (program.nodes.size() >= static_cast<std::size_t>(kMaxProgramNodes)) {
            known.erase(at);
            throw base::BadInput("the program has more than 20000 operations; shorten it or its loops");
        }
        node.span = span;
        program.nodes.push_back(node);
        weak.push_back(isWeak ? 1 : 0);
    }
    return at->second;
}

Value ProgramBuilder::State::cast(ProgramType type, Value value) {
    const ProgramNode& node = at(value);
    if (node.op == ProgramOp::Constant) {
        return constant(foldCast(type, constantOf(value)), false);
    }
    return node.type == type ? value : make(ProgramOp::Cast, type, value);
}

/// Logical not of a Bool.
Value ProgramBuilder::State::negated(Value value) {
    const ProgramNode node = at(value);
    const bool integers = node.args[0] >= 0 && at(node.args[0]).type != ProgramType::Float;
    switch (node.op) {
    case ProgramOp::Constant:
        return constant(boolConstant(node.integer == 0), isWeak(value));
    case ProgramOp::Not:
        return node.args[0];
    case ProgramOp::Eq:
        return make(ProgramOp::Ne, ProgramType::Bool, node.args[0], node.args[1]);
    case ProgramOp::Ne:
        return make(ProgramOp::Eq, ProgramType::Bool, node.args[0], node.args[1]);
    case ProgramOp::Lt:
        if (integers) { // floats may be NaN: then neither holds
            return make(ProgramOp::Le, ProgramType::Bool, node.args[1], node.args[0]);
        }
        break;
    case ProgramOp::Le:
        if (integers) {
            return make(ProgramOp::Lt, ProgramType::Bool, node.args[1], node.args[0]);
        }
        break;
    default:
        break;
    }
    return make(ProgramOp::Not, ProgramType::Bool, value);
}

/// The type that PyTorch gives an operation of the two; Python's numbers only bring their kind.
ProgramType ProgramBuilder::State::common(Value left, Value right) const {
    const ProgramType a = at(left).type;
    const ProgramType b = at(right).type;
    if (isWeak(left) == isWeak(right)) {
        return std::max(a, b);
    }
    const ProgramType typed = isWeak(left) ? b : a;
    const Value number = isWeak(left) ? left : right;
    const ProgramType weakType = at(number).type;
    if (weakType == ProgramType::Float || typed == ProgramType::Float) {
        return ProgramType::Float;
    }
    if (typed == ProgramType::Bool) {
        return weakType;
    }
    // PyTorch refuses a number that the tensor's type cannot hold; wider arithmetic gives what was meant.
    return typed == ProgramType::Int32 && !fitsInt32(at(number).integer) ? ProgramType::Int64 : typed;
}

/// Arithmetic and comparisons of two Bool.
Value ProgramBuilder::State::logic(ProgramOp op, Value left, Value right) {
    switch (op) {
    case ProgramOp::Add:
    case ProgramOp::Max:
    case ProgramOp::Or:
        return simplifiedLogic(ProgramOp::Or, left, right);
    case ProgramOp::Mul:
    case ProgramOp::Min:
    case ProgramOp::And:
        return simplifiedLogic(ProgramOp::And, left, right);
    case ProgramOp::Xor:
    case ProgramOp::Ne:
        return simplifiedLogic(ProgramOp::Xor, left, right);
    case ProgramOp::Eq:
        return negated(simplifiedLogic(ProgramOp::Xor, left, right));
    case ProgramOp::Lt:
        return simplifiedLogic(ProgramOp::And, negated(left), right);
    case ProgramOp::Le:
        return simplifiedLogic(ProgramOp::Or, negated(left), right);
    default:
        throw base::BadInput(std::string(programOpName(op)) +
                             " of two booleans is not defined; convert one with .int() or use & | ^");
    }
}

Value ProgramBuilder::State::simplifiedLogic(ProgramOp op, Value left, Value right) {
    if (isConstant(left) && isConstant(right)) {
        return constant(foldTyped(op, constantOf(left), constantOf(right)), isWeak(left) && isWeak(right));
    }
    if (isConstant(left)) {
        std::swap(left, right);
    }
    if (isConstant(right)) {
        const bool value = at(right).integer != 0;
        switch (op) {
        case ProgramOp::And:
            return value ? left : right;
        case ProgramOp::Or:
            return value ? right : left;
        default:
            return value ? negated(left) : left;
        }
    }
    if (left == right) {
        return op == ProgramOp::Xor ? constant(boolConstant(false), false) : left;
    }
    return make(op, ProgramType::Bool, left, right);
}

/// Both of one Int type, not both constant. -1: nothing is certain.
Value ProgramBuilder::State::simplifiedIntegers(ProgramOp op, Value left, Value right) {
    const ProgramType type = at(left).type;
    const auto number = [&](std::int64_t value) { return constant(intConstant(type, value), false); };
    const bool same = left == right;
    switch (op) {
    case ProgramOp::Mul:
        return isConstant(left, 0) || isConstant(right, 0) ? number(0) : -1;
    case ProgramOp::Sub:
    case ProgramOp::Xor:
        return same ? number(0) : -1;
    case ProgramOp::FloorDiv:
        return isConstant(right, 1) ? left : -1;
    case ProgramOp::Mod:
        return isConstant(right, 1) ? number(0) : -1;
    case ProgramOp::ShiftLeft:
    case ProgramOp::ShiftRight:
        return isConstant(right, 0) ? left : -1;
    case ProgramOp::Min:
    case ProgramOp::Max:
    case ProgramOp::And:
    case ProgramOp::Or:
        return same ? left : -1;
    case ProgramOp::Le:
    case ProgramOp::Eq:
        return same ? constant(boolConstant(true), false) : -1;
    case ProgramOp::Lt:
    case ProgramOp::Ne:
        return same ? constant(boolConstant(false), false) : -1;
    default:
        return -1;
    }
}

/// Both of one type that is not Bool.
Value ProgramBuilder::State::simplified(ProgramOp op, Value left, Value right) {
    const ProgramType type = at(left).type;
    if (isConstant(left) && isConstant(right)) {
        return constant(foldTyped(op, constantOf(left), constantOf(right)), false);
    }
    switch (op) {
    case ProgramOp::Add:
        if (isConstant(left, 0) || isConstant(right, 0)) {
            return isConstant(left, 0) ? right : left;
        }
        break;
    case ProgramOp::Mul:
        if (isConstant(left, 1) || isConstant(right, 1)) {
            return isConstant(left, 1) ? right : left;
        }
        break;
    case ProgramOp::Sub:
        if (isConstant(right, 0)) {
            return left;
        }
        break;
    case ProgramOp::Div:
    case ProgramOp::Pow:
        if (isConstant(right, 1)) {
            return left;
        }
        break;
    default:
        break;
    }
    if (type != ProgramType::Float) {
        if (const Value value = simplifiedIntegers(op, left, right); value >= 0) {
            return value;
        }
    }
    return make(op, isComparison(op) ? ProgramType::Bool : type, left, right);
}

} // namespace vitrine::kernels
